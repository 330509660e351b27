"""What the checks of chapter 12 share."""

from dataclasses import replace

from toytorch.facts.cards import card_of

# A T4 that is slow at double precision: small products take long in virtual time and none in ours.
SLOW = replace(card_of("T4"), float64=40e9)
SLOWER = replace(card_of("T4"), float64=5e9)
