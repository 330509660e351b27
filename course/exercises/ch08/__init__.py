"""Chapter 08, Losses and optimizers: cross entropy, SGD, Adam, AdamW, a schedule, clipping."""

# In the order in which the chapter has them.
from course.exercises.ch08.cross_entropy import entropy
from course.exercises.ch08.sgd import sgd
from course.exercises.ch08.adam import adam
from course.exercises.ch08.adamw import adamw
from course.exercises.ch08.schedule import schedule
from course.exercises.ch08.clip import clip
from course.exercises.ch08.cross_entropy_own import own_entropy
from course.exercises.ch08.adamw_own import own_adam
