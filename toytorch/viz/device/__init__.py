"""Pictures of work on hosts and devices: timelines, and the occupancy of a kernel."""
