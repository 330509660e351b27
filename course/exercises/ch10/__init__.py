"""Chapter 10, Training: the loop, checkpoints, patience, freezing."""

# In the order in which the chapter has them.
from course.exercises.ch10.fit import training
from course.exercises.ch10.checkpoint import checkpoint
from course.exercises.ch10.patience import patience
from course.exercises.ch10.freeze import freezing
from course.exercises.ch10.conv_own import own_conv
from course.exercises.ch10.trainer_own import own_trainer
