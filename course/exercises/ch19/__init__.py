"""Chapter 19, Capstone: embedding, layer norm and attention, and a GPT of one's own."""

# In the order in which the chapter has them.
from course.exercises.ch19.embedding import embedding
from course.exercises.ch19.norm import norm
from course.exercises.ch19.attention import attention
from course.exercises.ch19.gpt import gpt
