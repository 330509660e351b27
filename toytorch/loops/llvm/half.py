"""float16 where LLVM would call functions that only compilers' libraries have, as LLVM's text.

The conversions are those of IEEE 754 (rounded to nearest, ties to even; subnormal numbers, infinity
and NaN kept), done with integers.
"""

from __future__ import annotations

from toytorch.loops.processor import Processor

# LLVM joins the roundings to float and to half into one function; here, a store keeps them apart.
FROM_DOUBLE = """
define weak half @__truncdfhf2(double %x) noinline {
  %place = alloca float
  %float = fptrunc double %x to float
  store volatile float %float, ptr %place
  %again = load volatile float, ptr %place
  %half = fptrunc float %again to half
  ret half %half
}
"""
# 0x47800000 is 2¹⁶, the first number that is infinite; 0x38800000 is 2⁻¹⁴, the least normal one.
# Adding 0.5 to what is smaller moves its bits to where they are wanted, and rounds them.
FROM_FLOAT = """
define weak half @__truncsfhf2(float %x) noinline {
  %bits = bitcast float %x to i32
  %sign = and i32 %bits, -2147483648
  %size = xor i32 %bits, %sign
  %nan = icmp ugt i32 %size, 2139095040
  %large = select i1 %nan, i32 32256, i32 31744
  %magnitude = bitcast i32 %size to float
  %moved = fadd float %magnitude, 0.5
  %raised = bitcast float %moved to i32
  %small = sub i32 %raised, 1056964608
  %last = lshr i32 %size, 13
  %odd = and i32 %last, 1
  %rebased = add i32 %size, 3355447295
  %rounded = add i32 %rebased, %odd
  %normal = lshr i32 %rounded, 13
  %is_large = icmp uge i32 %size, 1199570944
  %is_small = icmp ult i32 %size, 947912704
  %finite = select i1 %is_small, i32 %small, i32 %normal
  %value = select i1 %is_large, i32 %large, i32 %finite
  %high = lshr i32 %sign, 16
  %both = or i32 %value, %high
  %short = trunc i32 %both to i16
  %half = bitcast i16 %short to half
  ret half %half
}
"""
TO_FLOAT = """
define weak float @__extendhfsf2(half %x) noinline {
  %short = bitcast half %x to i16
  %bits = zext i16 %short to i32
  %size = and i32 %bits, 32767
  %moved = shl i32 %size, 13
  %exponent = and i32 %moved, 260046848
  %normal = add i32 %moved, 939524096
  %large = add i32 %normal, 939524096
  %raised = add i32 %normal, 8388608
  %raised_float = bitcast i32 %raised to float
  %small_float = fsub float %raised_float, 0x3F10000000000000
  %small = bitcast float %small_float to i32
  %is_large = icmp eq i32 %exponent, 260046848
  %is_small = icmp eq i32 %exponent, 0
  %finite = select i1 %is_small, i32 %small, i32 %normal
  %value = select i1 %is_large, i32 %large, i32 %finite
  %high = and i32 %bits, 32768
  %sign = shl i32 %high, 16
  %both = or i32 %value, %sign
  %float = bitcast i32 %both to float
  ret float %float
}
"""


def functions(text: str, processor: Processor) -> str:
    """What has to be added to the text of a kernel."""
    if "half" not in text:
        return ""
    own = "" if processor.half else FROM_FLOAT + TO_FLOAT
    return own + (FROM_DOUBLE if "double" in text else "")
