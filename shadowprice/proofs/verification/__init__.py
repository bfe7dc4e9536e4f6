"""Parts of the verifier: rules of special kinds of schedules, and other ways through long ones."""
