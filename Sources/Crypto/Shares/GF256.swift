/// Arithmetic in GF(2^8) modulo x^8 + x^4 + x^3 + x + 1 (FIPS 197, 4) in constant time: no tables, and no branches on
/// the numbers.
enum GF256 {
    static func multiply(_ left: UInt8, _ right: UInt8) -> UInt8 {
        var (left, right, product): (UInt8, UInt8, UInt8) = (left, right, 0)
        for _ in 0..<8 {
            // 0 or all ones, depending on the bit.
            product ^= left & (0 &- (right & 1))
            left = left << 1 ^ 0x1B & (0 &- (left >> 7))
            right >>= 1
        }
        return product
    }

    /// The inverse: the 254th power, because the 255th power of any number but zero is one. The inverse of zero is
    /// defined as zero.
    static func invert(_ number: UInt8) -> UInt8 {
        var power = number
        var result: UInt8 = 1
        // 254 = 2 + 4 + 8 + … + 128.
        for _ in 0..<7 {
            power = multiply(power, power)
            result = multiply(result, power)
        }
        return result
    }

    /// The factor of a share for the value at 0 (Lagrange interpolation).
    ///
    /// - Parameters:
    ///   - point: the point of the share.
    ///   - points: the points of all shares used, all different, none 0; not secret.
    static func weight(of point: UInt8, among points: [UInt8]) -> UInt8 {
        points.reduce(1) { weight, other in
            other == point ? weight : multiply(weight, multiply(other, invert(other ^ point)))
        }
    }
}
