/* The compiled kernels, as data of the program. KERNELS_FATBIN is the file that nvcc made;
   in the section of that name, `cuobjdump allocrig` shows what is inside. */
    .section .nv_fatbin, "a", %progbits
    .balign 64
    .globl kernels_image
    .type kernels_image, %object
kernels_image:
    .incbin KERNELS_FATBIN
    .size kernels_image, . - kernels_image
    .byte 0
    .section .note.GNU-stack, "", %progbits
