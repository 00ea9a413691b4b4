"""Hardware: parameters, RTL, registers, testbenches, proofs."""
