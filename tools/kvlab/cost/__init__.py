"""What the stories app takes on an RP2040, from counted instructions: cycles, seconds, tokens/s."""
