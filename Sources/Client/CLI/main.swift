// The thicket program.
