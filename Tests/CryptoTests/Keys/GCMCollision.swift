import Testing
import ThicketCrypto

/// Makes a ciphertext of one block that AES-256-GCM opens under two keys (Dodis, Grubbs, Ristenpart, Woodage 2018, 3):
/// its tag is linear in the block, so the two equations for one tag are solved for the block.
enum GCMCollision {
    static func make(_ first: SecureBytes, _ second: SecureBytes, _ nonce: AEADNonce) throws -> [UInt8] {
        let (h1, h2) = (try hashKey(first), try hashKey(second))
        // tag = C·H² + L·H + E, where E is the tag of no text and no data.
        let (e1, e2) = (try mask(first, nonce), try mask(second, nonce))
        let length = Block(high: 0, low: 128)
        let sum = length.times(h1) + length.times(h2) + e1 + e2
        let square = h1.times(h1) + h2.times(h2)
        let text = sum.times(square.inverse)
        let tag = text.times(h1).times(h1) + length.times(h1) + e1
        return text.octets + tag.octets
    }

    /// AES of a block of zeros.
    private static func hashKey(_ key: SecureBytes) throws -> Block {
        let zeros = [UInt8](repeating: 0, count: 16)
        return Block(try AESCBC.encrypt(zeros, key: key, vector: zeros))
    }

    private static func mask(_ key: SecureBytes, _ nonce: AEADNonce) throws -> Block {
        Block(try AEAD(.aes256GCM, key: key).seal([UInt8](), nonce: nonce, data: []))
    }

    /// An element of GF(2^128) as GCM writes it (SP 800-38D, 6.3): the first bit is the coefficient of 1.
    struct Block: Equatable {
        var high: UInt64
        var low: UInt64

        init(high: UInt64, low: UInt64) { (self.high, self.low) = (high, low) }

        init(_ octets: [UInt8]) {
            high = octets.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
            low = octets[8..<16].reduce(0) { $0 << 8 | UInt64($1) }
        }

        var octets: [UInt8] {
            [high, low].flatMap { number in withUnsafeBytes(of: number.bigEndian) { Array($0) } }
        }

        static func + (left: Block, right: Block) -> Block {
            Block(high: left.high ^ right.high, low: left.low ^ right.low)
        }

        func times(_ other: Block) -> Block {
            var (sum, factor): (Block, Block) = (.init(high: 0, low: 0), self)
            for bit: UInt64 in 0..<128 {
                let isSet = bit < 64 ? other.high >> (63 - bit) & 1 == 1 : other.low >> (127 - bit) & 1 == 1
                if isSet { sum = sum + factor }
                let carry = factor.low & 1
                factor = Block(high: factor.high >> 1, low: factor.low >> 1 | factor.high << 63)
                if carry == 1 { factor.high ^= 0xE1 << 56 }
            }
            return sum
        }

        /// To the power of 2^128 − 2.
        var inverse: Block {
            var (result, power): (Block, Block) = (.init(high: 1 << 63, low: 0), self)
            for _ in 1..<128 {
                power = power.times(power)
                result = result.times(power)
            }
            return result
        }
    }
}
