"""`caudal quickstart`: a guided tour of the platform, on which every step is done for real and checked."""
