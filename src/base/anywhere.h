/* anywhere.h - for functions that lie in a header because a kernel of a card calls them too. They speak the words that
 * C and C++ share. */
#ifndef TWI_ANYWHERE_H
#define TWI_ANYWHERE_H

#ifdef __CUDACC__
#define TWI_ANYWHERE static __host__ __device__ __forceinline__
#else
#define TWI_ANYWHERE static inline
#endif

#endif
