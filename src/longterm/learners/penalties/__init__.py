"""Steps on the loss plus a penalty on the violation."""
