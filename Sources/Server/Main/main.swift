// The thicketd program.
