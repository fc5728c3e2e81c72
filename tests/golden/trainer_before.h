/* made by make_trainer_checkpoint.c */
static const float trainer_before_losses[] = {1.61669934f, 1.42295957f, 1.32546043f, };
static const float trainer_before_alone_losses[] = {1.46158254f, 1.78759599f, 2.32724977f, };
