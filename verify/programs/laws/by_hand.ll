; Assembly by hand, for `verify/laws`: what its reader must not take for true (names begin as those in untrue.rs), and at the
; end what is true. A reader that left out a flag, poison, a bound or what it does not know would prove nearly all of it.
target datalayout = "e-m:e-i64:64-i128:128-n32:64-S128"

define i8 @untrue_a_sum_without_a_sign_that_wraps(i32 %a) {
start:
  %sum = add nuw i32 %a, 1
  %holds = icmp uge i32 %sum, 0
  %result = zext i1 %holds to i8
  ret i8 %result
}

define i8 @untrue_a_difference_with_a_sign_that_wraps(i32 %a) {
start:
  %rest = sub nsw i32 %a, 1
  %holds = icmp uge i32 %rest, 0
  %result = zext i1 %holds to i8
  ret i8 %result
}

define i8 @untrue_a_product_that_wraps(i32 %a) {
start:
  %product = mul nuw i32 %a, 3
  %holds = icmp uge i32 %product, 0
  %result = zext i1 %holds to i8
  ret i8 %result
}

define i8 @untrue_a_shift_by_all_bits(i32 %by) {
start:
  %shifted = shl i32 1, %by
  %holds = icmp uge i32 %shifted, 0
  %result = zext i1 %holds to i8
  ret i8 %result
}

define i8 @untrue_a_shift_that_loses_bits(i32 %a) {
start:
  %shifted = lshr exact i32 %a, 1
  %holds = icmp uge i32 %shifted, 0
  %result = zext i1 %holds to i8
  ret i8 %result
}

define i8 @untrue_bits_in_common(i32 %a) {
start:
  %bits = or disjoint i32 %a, 1
  %holds = icmp uge i32 %bits, 0
  %result = zext i1 %holds to i8
  ret i8 %result
}

define i8 @untrue_a_negative_number_that_grows(i32 %a) {
start:
  %wide = zext nneg i32 %a to i64
  %holds = icmp uge i64 %wide, 0
  %result = zext i1 %holds to i8
  ret i8 %result
}

define i8 @untrue_a_number_that_loses_bits(i32 %a) {
start:
  %short = trunc nuw i32 %a to i16
  %holds = icmp uge i16 %short, 0
  %result = zext i1 %holds to i8
  ret i8 %result
}

define i8 @untrue_numbers_of_two_signs(i32 %a) {
start:
  %is_less = icmp samesign ult i32 %a, 5
  %result = select i1 %is_less, i8 1, i8 1
  %sum = zext i1 %is_less to i8
  %none = and i8 %sum, 0
  %all = or i8 %none, %result
  ret i8 %all
}

define i8 @untrue_a_branch_on_poison(i32 %a) {
start:
  br i1 poison, label %one, label %other
one:
  ret i8 1
other:
  ret i8 1
}

define i8 @untrue_a_division_by_zero(i32 %a) {
start:
  %quotient = udiv i32 8, %a
  %holds = icmp uge i32 %quotient, 0
  %result = zext i1 %holds to i8
  ret i8 %result
}

define i8 @untrue_what_is_assumed(i32 %a) {
start:
  %is_small = icmp ult i32 %a, 5
  call void @llvm.assume(i1 %is_small)
  ret i8 1
}

define i8 @untrue_a_load_behind_the_end(i64 %at) {
start:
  %words = alloca [4 x i32], align 4
  store i32 1, ptr %words, align 4
  %place = getelementptr [4 x i32], ptr %words, i64 0, i64 %at
  %word = load i32, ptr %place, align 4
  %holds = icmp uge i32 %word, 0
  %result = zext i1 %holds to i8
  ret i8 %result
}

define i8 @untrue_an_end_that_is_reached(i32 %a) {
start:
  %is_small = icmp ult i32 %a, 5
  br i1 %is_small, label %one, label %other
one:
  ret i8 1
other:
  unreachable
}

define i8 @untrue_a_call(i32 %a) {
start:
  call void @somewhere(i32 %a)
  ret i8 1
}

define i8 @strange_an_instruction(i32 %a) {
start:
  %sum = addsub i32 %a, 1
  ret i8 1
}

define i8 @strange_a_flag(i32 %a) {
start:
  %sum = add nxw i32 %a, 1
  ret i8 1
}

define i8 @strange_an_intrinsic(i32 %a) {
start:
  %bits = call i32 @llvm.bitreverse.i32(i32 %a)
  ret i8 1
}

define i8 @strange_a_fraction(i32 %a) {
start:
  %half = uitofp i32 %a to float
  ret i8 1
}

define i8 @strange_a_load_that_may_change(i32 %a) {
start:
  %word = alloca i32, align 4
  store i32 %a, ptr %word, align 4
  %again = load volatile i32, ptr %word, align 4
  ret i8 1
}

define i8 @strange_an_assumption_of_a_place(i32 %a) {
start:
  %word = alloca i32, align 4
  call void @llvm.assume(i1 true) [ "align"(ptr %word, i64 64) ]
  ret i8 1
}

define i8 @strange_a_load_of_a_range(i32 %a) {
start:
  %word = alloca i32, align 4
  store i32 %a, ptr %word, align 4
  %again = load i32, ptr %word, align 4, !range !0
  ret i8 1
}

define i8 @strange_a_place_of_any_size(ptr %a) {
start:
  %word = load i32, ptr %a, align 4
  ret i8 1
}

define i8 @strange_a_loop_by_hand(i32 %a) {
start:
  br label %again
again:
  br label %again
}

define i8 @empty_nothing_is_asked(i32 %a) {
start:
  ret i8 2
}

define i8 @poison_that_is_not_chosen(i32 %a) {
start:
  %is_last = icmp eq i32 %a, -1
  %sum = add nuw i32 %a, 1
  %chosen = select i1 %is_last, i32 7, i32 %sum
  %holds = icmp ne i32 %chosen, 0
  %result = zext i1 %holds to i8
  ret i8 %result
}

define i8 @poison_that_is_frozen(i32 %a) {
start:
  %sum = add nuw i32 %a, 1
  %any = freeze i32 %sum
  %holds = icmp uge i32 %any, 0
  %result = zext i1 %holds to i8
  ret i8 %result
}

define i8 @words_in_memory_are_found_again(i32 %a, i32 %b) {
start:
  %words = alloca [2 x i32], align 4
  %second = getelementptr [2 x i32], ptr %words, i64 0, i64 1
  store i32 %a, ptr %words, align 4
  store i32 %b, ptr %second, align 4
  %word = load i32, ptr %words, align 4
  %holds = icmp eq i32 %word, %a
  %result = zext i1 %holds to i8
  ret i8 %result
}

define i8 @a_quotient_and_its_rest_are_what_was_divided(i32 %a) {
start:
  %quotient = udiv i32 %a, 12
  %rest = urem i32 %a, 12
  %product = mul nuw i32 %quotient, 12
  %sum = add nuw i32 %product, %rest
  %is_all = icmp eq i32 %sum, %a
  %is_less = icmp ult i32 %rest, 12
  %is_small = icmp ult i32 %quotient, 357913942
  %both = and i1 %is_all, %is_less
  %holds = and i1 %both, %is_small
  %result = zext i1 %holds to i8
  ret i8 %result
}

define i8 @untrue_a_quotient_is_rounded_up(i32 %a) {
start:
  %quotient = udiv i32 %a, 12
  %product = mul i32 %quotient, 12
  %holds = icmp uge i32 %product, %a
  %result = zext i1 %holds to i8
  ret i8 %result
}

define i8 @untrue_a_rest_that_is_less_than_it_may_be(i32 %a) {
start:
  %rest = urem i32 %a, 12
  %holds = icmp ult i32 %rest, 11
  %result = zext i1 %holds to i8
  ret i8 %result
}

define i8 @untrue_two_numbers_have_one_quotient(i32 %a, i32 %b) {
start:
  %one = udiv i32 %a, 12
  %other = udiv i32 %b, 12
  %holds = icmp eq i32 %one, %other
  %result = zext i1 %holds to i8
  ret i8 %result
}
