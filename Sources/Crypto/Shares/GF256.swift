/// Arithmetic in GF(2^8) modulo x^8 + x^4 + x^3 + x + 1 (FIPS 197, 4), in a time that does not depend on the numbers:
/// no tables, no branches on them.
enum GF256 {
    static func multiply(_ left: UInt8, _ right: UInt8) -> UInt8 {
        var (left, right, product): (UInt8, UInt8, UInt8) = (left, right, 0)
        for _ in 0..<8 {
            // 0 or all ones, by the bit.
            product ^= left & (0 &- (right & 1))
            left = left << 1 ^ 0x1B & (0 &- (left >> 7))
            right >>= 1
        }
        return product
    }

    /// The inverse: the 254th power, since the 255th of anything but zero is one. That of zero is zero.
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

    /// What share number i is multiplied with to give the value at 0 (Lagrange).
    /// - Parameters:
    ///   - points: of all shares used, none twice, none 0; they are no secret.
    static func weight(of point: UInt8, among points: [UInt8]) -> UInt8 {
        points.reduce(1) { weight, other in
            other == point ? weight : multiply(weight, multiply(other, invert(other ^ point)))
        }
    }
}
