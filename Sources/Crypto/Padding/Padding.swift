/// Hides the length of sealed content: length ‖ bytes ‖ zeros, up to a size that many lengths share.
///
/// The length is big-endian and has four bytes by default; it counts towards the size. Reading is strict: only the
/// output of `pad` is accepted, so each text has exactly one padded form.
public enum Padding: Sendable, Hashable {
    /// No zeros: the size reveals the length.
    case none
    /// To the next multiple of this many bytes, at least 1.
    case multiple(of: Int)
    /// Padmé: the size has no more significant bits than a logarithm of it needs. It adds at most 12 %, and gives no
    /// more than log log different sizes for the lengths up to any bound (Nikitin et al., Reducing Metadata Leakage
    /// from Encrypted Files and Communication with PURBs, PoPETs 2019, algorithm 1).
    case padme

    /// Bytes that can be padded: fewer than 2^31, so that no computed size overflows.
    public static let countMax = (1 << 31) - 1

    /// The size after padding.
    ///
    /// - Parameter count: 0...`countMax`, or at most 2^62 for contents that are never in memory as a whole.
    public func size(of count: Int) -> Int {
        switch self {
        case .none: return count
        case .multiple(let given):
            let step = max(1, given)
            return (count + step - 1) / step * step
        case .padme:
            guard count >= 2 else { return count }
            // Clears the low bits: as many as the exponent, less the number of bits in the exponent itself.
            let exponent = Int.bitWidth - 1 - count.leadingZeroBitCount
            let kept = Int.bitWidth - exponent.leadingZeroBitCount
            let mask = (1 << max(0, exponent - kept)) - 1
            return (count + mask) & ~mask
        }
    }

    /// Pads bytes.
    ///
    /// - Parameters:
    ///   - bytes: the bytes to pad.
    ///   - lengthBytes: bytes of the length at the start, 2 or 4.
    /// - Returns: nil for more bytes than the length can express.
    public func pad(_ bytes: [UInt8], lengthBytes: Int = 4) -> [UInt8]? {
        guard let size = paddedSize(bytes.count, lengthBytes) else { return nil }
        return [UInt8].made(size) { room in bytes.withUnsafeBytes { Self.write($0, lengthBytes, to: room) } }
    }

    /// Pads a secret; parameters and result are those for bytes.
    public func pad(_ secret: SecureBytes, lengthBytes: Int = 4) -> SecureBytes? {
        guard let size = paddedSize(secret.count, lengthBytes) else { return nil }
        return SecureBytes(count: size) { room in secret.withUnsafeBytes { Self.write($0, lengthBytes, to: room) } }
    }

    /// The bytes before padding.
    ///
    /// - Returns: nil for anything that `pad` does not write: a length beyond the end, another size than that of this
    ///   rule, or filling that is not zero.
    public func unpad(_ padded: [UInt8], lengthBytes: Int = 4) -> [UInt8]? {
        padded.withUnsafeBytes { content(of: $0, lengthBytes) }.map { Array(padded[$0]) }
    }

    /// The secret before padding; the result is as for bytes.
    public func unpad(_ padded: SecureBytes, lengthBytes: Int = 4) -> SecureBytes? {
        padded.withUnsafeBytes { content(of: $0, lengthBytes) }.map { padded.part($0) }
    }

    private func paddedSize(_ count: Int, _ lengthBytes: Int) -> Int? {
        guard count <= Self.countMax, lengthBytes == 4 || (lengthBytes == 2 && count < 1 << 16) else { return nil }
        return size(of: lengthBytes + count)
    }

    /// - Parameter room: zeros, as many as the padded size.
    private static func write(
        _ bytes: UnsafeRawBufferPointer, _ lengthBytes: Int, to room: UnsafeMutableRawBufferPointer
    ) {
        for index in 0..<lengthBytes {
            room[index] = UInt8(truncatingIfNeeded: bytes.count >> (8 * (lengthBytes - 1 - index)))
        }
        UnsafeMutableRawBufferPointer(rebasing: room[lengthBytes...]).copyMemory(from: bytes)
    }

    /// The range of the bytes in the padded ones; nil in the same cases as `unpad`.
    package func content(of padded: UnsafeRawBufferPointer, _ lengthBytes: Int = 4) -> Range<Int>? {
        guard lengthBytes == 4 || lengthBytes == 2, padded.count >= lengthBytes else { return nil }
        let count = padded[..<lengthBytes].reduce(0) { $0 << 8 | Int($1) }
        guard count <= Self.countMax, count <= padded.count - lengthBytes,
            size(of: lengthBytes + count) == padded.count,
            padded[(lengthBytes + count)...].reduce(0, |) == 0
        else { return nil }
        return lengthBytes..<lengthBytes + count
    }
}
