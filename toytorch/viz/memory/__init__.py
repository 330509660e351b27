"""Pictures of memory: storages, views, files, programs line by line."""
