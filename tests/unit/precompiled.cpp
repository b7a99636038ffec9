// Empty: compiled so that the precompiled header of the unit tests is made.
