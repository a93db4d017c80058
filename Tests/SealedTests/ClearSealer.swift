import ThicketCrypto
import ThicketSealed

/// Does not encrypt: it writes a header, the clear bytes and a checksum, so that tests of the rules are quick and can
/// forge anything.
struct ClearSealer: Sealer {
    var object: UInt8 = 0
    var listVersion = 0

    func seal(_ clear: [UInt8], kind: SealedHeader.Kind, id: [UInt8], position: Int, nonce: [UInt8]) -> [UInt8] {
        let head = [kind.rawValue, object] + id
        return head + clear + checksum(head + clear, position)
    }

    func open(_ sealed: [UInt8], kind: SealedHeader.Kind, position: Int) -> (id: [UInt8], clear: [UInt8])? {
        guard sealed.count >= 26, sealed[0] == kind.rawValue, sealed[1] == object else { return nil }
        let body = Array(sealed.dropLast(8))
        guard checksum(body, position).elementsEqual(sealed.suffix(8)) else { return nil }
        return (id: Array(sealed[2..<18]), clear: Array(body[18...]))
    }

    /// FNV-1a.
    private func checksum(_ bytes: [UInt8], _ position: Int) -> [UInt8] {
        var sum: UInt64 = 0xCBF2_9CE4_8422_2325 ^ UInt64(position)
        for byte in bytes { sum = (sum ^ UInt64(byte)) &* 0x100_0000_01B3 }
        return (0..<8).map { UInt8(truncatingIfNeeded: sum >> UInt64($0 * 8)) }
    }
}
