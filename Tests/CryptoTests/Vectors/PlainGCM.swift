import ThicketCrypto

/// AES-GCM as SP 800-38D defines it, made of single AES blocks and a hash over GF(2^128): slow, for nonces of any
/// length, and to compare OpenSSL with. Its tags have 16 bytes.
struct PlainGCM {
    typealias Block = GCMCollision.Block

    let key: SecureBytes

    /// Ciphertext ‖ tag (7.1).
    func seal(_ clear: [UInt8], nonce: [UInt8], data: [UInt8]) throws -> [UInt8] {
        let hashKey = try cipher(Block(high: 0, low: 0))
        let start = Self.start(nonce, hashKey)
        let text: [UInt8] = try count(clear, from: Self.next(start))
        let lengths = Block(high: UInt64(data.count) * 8, low: UInt64(text.count) * 8)
        let tag: Block = try Self.hash(Self.padded(data) + Self.padded(text) + lengths.octets, hashKey) + cipher(start)
        return text + tag.octets
    }

    /// Where counting begins (7.1, step 2).
    private static func start(_ nonce: [UInt8], _ hashKey: Block) -> Block {
        if nonce.count == 12 { return Block(nonce + [0, 0, 0, 1]) }
        return hash(padded(nonce) + Block(high: 0, low: UInt64(nonce.count) * 8).octets, hashKey)
    }

    /// GCTR (6.5).
    private func count(_ clear: [UInt8], from first: Block) throws -> [UInt8] {
        var (block, text): (Block, [UInt8]) = (first, [])
        for place in stride(from: 0, to: clear.count, by: 16) {
            text += zip(clear[place...].prefix(16), try cipher(block).octets).map { $0 ^ $1 }
            block = Self.next(block)
        }
        return text
    }

    /// The last 32 bits count, and carry nothing (6.2).
    private static func next(_ block: Block) -> Block {
        let number = UInt32(truncatingIfNeeded: block.low) &+ 1
        return Block(high: block.high, low: block.low & ~0xFFFF_FFFF | UInt64(number))
    }

    /// GHASH (6.4), of whole blocks.
    private static func hash(_ bytes: [UInt8], _ hashKey: Block) -> Block {
        stride(from: 0, to: bytes.count, by: 16).reduce(Block(high: 0, low: 0)) { sum, place in
            (sum + Block(Array(bytes[place..<place + 16]))).times(hashKey)
        }
    }

    private static func padded(_ bytes: [UInt8]) -> [UInt8] {
        bytes + [UInt8](repeating: 0, count: (16 - bytes.count % 16) % 16)
    }

    /// One block by AES: the first that CBC gives from a vector of zeros.
    private func cipher(_ block: Block) throws -> Block {
        Block(try AESCBC.encrypt(block.octets, key: key, vector: [UInt8](repeating: 0, count: 16)))
    }
}
