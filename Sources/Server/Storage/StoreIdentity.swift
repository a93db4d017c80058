import ThicketCrypto
import ThicketProtocol

/// Keys and numbers that are chosen when a store is created; constant while it is open.
public struct StoreIdentity: Sendable, Hashable {
    /// Key of `ChangeVersionCodec`, which encrypts positions into opaque cvs; 16 bytes.
    public let cvKey: [UInt8]
    /// SipHash key of the ccid set; 16 bytes.
    public let changeIDKey: [UInt8]
    /// Raised by a random step at every restore: a cv of another epoch is unknown.
    public let epoch: UInt32
    /// Versions of a key that never existed begin at this value + 1. A restore raises it, and all stored versions, by a
    /// multiple of `versionStep`, so that a version that a client may hold is never reused with other content.
    public let versionBase: Version

    /// Requires keys of 16 bytes.
    public init(cvKey: [UInt8], changeIDKey: [UInt8], epoch: UInt32, versionBase: Version) {
        precondition(cvKey.count == 16 && changeIDKey.count == 16, "a store's keys have 16 bytes")
        self.cvKey = cvKey
        self.changeIDKey = changeIDKey
        self.epoch = epoch
        self.versionBase = versionBase
    }

    /// A restore adds a random multiple of this step to every version. It is a multiple of 10, so that the versions
    /// that are kept long (1 modulo 10) stay the same ones.
    public static let versionStep: Version = 1_000_000

    /// Keys derived from `seed`, so that the same seed gives the same store in a simulation.
    public static func seeded(_ seed: UInt64) -> StoreIdentity {
        let label: [UInt8] = Array("thicket store \(seed)".utf8)
        let bytes = Hash.sha256(label)
        return StoreIdentity(
            cvKey: Array(bytes[0..<16]), changeIDKey: Array(bytes[16..<32]), epoch: 1, versionBase: 0)
    }

    /// Keyed 64-bit hash of a ccid, for a bucket's set of known ccids. A client without the key cannot construct
    /// collisions.
    public func hash(of changeID: ChangeID) -> UInt64 {
        var text = changeID.text
        return text.withUTF8 { SipHash.hash(key: changeIDKey, UnsafeRawBufferPointer($0)) }
    }
}

/// SipHash-2-4 (Aumasson and Bernstein, 2012): a keyed hash for short inputs.
enum SipHash {
    static func hash(key: [UInt8], _ bytes: UnsafeRawBufferPointer) -> UInt64 {
        let (k0, k1) = key.withUnsafeBytes {
            (
                UInt64(littleEndian: $0.loadUnaligned(fromByteOffset: 0, as: UInt64.self)),
                UInt64(littleEndian: $0.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
            )
        }
        var state = State(k0: k0, k1: k1)
        var offset = 0
        while offset + 8 <= bytes.count {
            state.absorb(UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self)))
            offset += 8
        }
        var last = UInt64(bytes.count & 0xFF) << 56
        for index in offset..<bytes.count { last |= UInt64(bytes[index]) << UInt64((index - offset) * 8) }
        state.absorb(last)
        return state.finish()
    }

    private struct State {
        var v0: UInt64
        var v1: UInt64
        var v2: UInt64
        var v3: UInt64

        init(k0: UInt64, k1: UInt64) {
            v0 = k0 ^ 0x736f_6d65_7073_6575
            v1 = k1 ^ 0x646f_7261_6e64_6f6d
            v2 = k0 ^ 0x6c79_6765_6e65_7261
            v3 = k1 ^ 0x7465_6462_7974_6573
        }

        mutating func absorb(_ word: UInt64) {
            v3 ^= word
            round()
            round()
            v0 ^= word
        }

        mutating func finish() -> UInt64 {
            v2 ^= 0xFF
            for _ in 0..<4 { round() }
            return v0 ^ v1 ^ v2 ^ v3
        }

        private mutating func round() {
            v0 &+= v1
            v1 = turned(v1, 13) ^ v0
            v0 = turned(v0, 32)
            v2 &+= v3
            v3 = turned(v3, 16) ^ v2
            v0 &+= v3
            v3 = turned(v3, 21) ^ v0
            v2 &+= v1
            v1 = turned(v1, 17) ^ v2
            v2 = turned(v2, 32)
        }

        private func turned(_ word: UInt64, _ by: UInt64) -> UInt64 { word << by | word >> (64 - by) }
    }
}
