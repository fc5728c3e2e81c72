/* types.h - the types that ops take, as the texts of their rows have them, without braces. */
#ifndef TWI_OP_TYPES_H
#define TWI_OP_TYPES_H

#define TWI_INTEGERS "int8,int16,int32,int64,uint8,uint16,uint32,uint64"
#define TWI_REALS "bfloat16,half,float,double," TWI_INTEGERS
#define TWI_COMPLEX "complex64,complex128"
#define TWI_NUMBERS TWI_REALS "," TWI_COMPLEX
#define TWI_QUANTIZED "qint8,quint8,qint16,quint16,qint32"

#endif
