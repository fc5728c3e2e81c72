/* rectifier.inl - activations that integers have too; see activation.c. */

/* A NaN passes. */
ACTIVATION(relu, x[i] <= 0 ? 0 : x[i])
ACTIVATION(relu6, x[i] <= 0 ? 0 : x[i] > 6 ? 6 : x[i])
GRADIENT(relu_grad, x[i] > 0 ? dy[i] : 0)
GRADIENT(relu6_grad, x[i] > 0 && x[i] < 6 ? dy[i] : 0)
