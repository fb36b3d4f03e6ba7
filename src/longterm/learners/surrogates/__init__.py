"""An inner learner on the loss plus a priced constraint."""
