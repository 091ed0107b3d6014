"""The paper's experiments: one file an artefact."""
