"""Chapter 09, Data: a dataset, a sampler, batches, collate, fetching in order."""

# In the order in which the chapter has them.
from course.exercises.ch09.standardised import standardised
from course.exercises.ch09.shuffled import shuffled
from course.exercises.ch09.batches import batches
from course.exercises.ch09.collate import collate
from course.exercises.ch09.in_order import ordered
from course.exercises.ch09.loader_own import own_loader
