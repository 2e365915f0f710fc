# From PVH's entry, 32-bit without paging, to `main` in long mode.

.section .note.pvh, "a", @note
    .balign 4
    .long 4, 4, 18          # sizes of name and value; XEN_ELFNOTE_PHYS32_ENTRY
    .asciz "Xen"
    .long _start

.section .text.start, "ax"
.code32
.global _start
_start:
    cld
    mov esp, offset _stack_top

    # Tables for the first 4 GiB where they are, in pages of 2 MiB. The memory is
    # zero: nothing was there before.
    mov edi, offset _page_tables
    lea eax, [edi + 0x1003]
    mov [edi], eax                      # level 4: one entry
    lea ebx, [edi + 0x1000]
    mov ecx, 4
2:  add eax, 0x1000
    mov [ebx], eax                      # level 3: four
    add ebx, 8
    loop 2b
    lea ebx, [edi + 0x2000]
    mov eax, 0x83                       # present, writable, large
    mov ecx, 2048
3:  mov [ebx], eax                      # level 2: all
    add eax, 0x200000
    add ebx, 8
    loop 3b

    mov cr3, edi
    mov eax, cr4
    or eax, 0x20                        # physical address extension
    mov cr4, eax
    mov ecx, 0xc0000080                 # the extended feature register
    rdmsr
    or eax, 0x100                       # long mode
    wrmsr
    mov eax, cr0
    or eax, 0x80000000                  # paging
    mov cr0, eax
    lgdt [segments]
    .byte 0xea                          # far jump
    .long long_mode
    .word 8

.code64
long_mode:
    xor eax, eax
    mov ds, eax
    mov es, eax
    mov ss, eax
    call main

# The registers that a function may change. The target has no vector registers.
.global on_interrupt
on_interrupt:
    push rax
    push rcx
    push rdx
    push rsi
    push rdi
    push r8
    push r9
    push r10
    push r11
    sub rsp, 8
    cld
    call handle_interrupt
    add rsp, 8
    pop r11
    pop r10
    pop r9
    pop r8
    pop rdi
    pop rsi
    pop rdx
    pop rcx
    pop rax
    iretq

.section .rodata, "a"
.balign 8
segment_table:
    .quad 0
    .quad 0x00209a0000000000            # 64-bit code
segments:
    .word . - segment_table - 1
    .long segment_table
    .long 0
