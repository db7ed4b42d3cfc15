/* The compiled kernels, as data of the program. KERNELS_FATBIN is the file that nvcc made;
   in the section of that name, `cuobjdump allocrig` shows what is inside. Without one the image is empty. */
    .section .nv_fatbin, "a", %progbits
    .balign 64
    .globl kernels_image
    .hidden kernels_image
    .type kernels_image, %object
kernels_image:
#ifdef KERNELS_FATBIN
    .incbin KERNELS_FATBIN
#endif
.Lend:
    .size kernels_image, . - kernels_image
    .byte 0

    .section .rodata, "a", %progbits
    .balign 8
    .globl kernels_image_bytes
    .hidden kernels_image_bytes
    .type kernels_image_bytes, %object
    .size kernels_image_bytes, 8
kernels_image_bytes:
    .quad .Lend - kernels_image
    .section .note.GNU-stack, "", %progbits
