"""Hadar (IPDPS'24): prices and a dual subroutine in every round; commit-once, HadarE, the optimum."""
