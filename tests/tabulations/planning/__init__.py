"""Plans and starting specs of tabulations."""
