"""Chapter 14, Passes and fusion: dead code, sharing and folding, derivatives, groups, kernels."""

# In the order in which the chapter has them.
from course.exercises.ch14.prune import own_prune
from course.exercises.ch14.share import own_share
from course.exercises.ch14.derive import own_derive
from course.exercises.ch14.groups import own_groups
from course.exercises.ch14.fuse import own_fuse
