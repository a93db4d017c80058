import ThicketCrypto
import ThicketTreeShape

/// The last list of a branch whose sharing was ended. The root's sealed metadata keeps it, so that the lists go on from
/// it when the branch is shared again: a device that knew the earlier list sees one that follows it (decision 0067).
struct EndedList: Sendable, Hashable {
    /// Bytes of the written form.
    static let bytesCount = 8 + 4 + digestBytes
    private static let digestBytes = 32

    let version: Int64
    let epoch: UInt32
    /// `ShareList.digest`.
    let digest: [UInt8]

    init(_ list: ShareList, at place: ShareList.Place) {
        (version, epoch, digest) = (list.version, list.epoch, list.digest(at: place))
    }

    /// version (8) ‖ epoch (4) ‖ digest (32).
    var octets: [UInt8] { version.octets + epoch.octets + digest }

    /// - Returns: nil for bytes that are not the written form.
    init?(octets: [UInt8]) {
        guard octets.count == Self.bytesCount else { return nil }
        func number(_ range: Range<Int>) -> UInt64 { octets[range].reduce(0) { $0 << 8 | UInt64($1) } }
        guard let version = Int64(exactly: number(0..<8)), version > 0 else { return nil }
        (self.version, epoch, digest) = (version, UInt32(number(8..<12)), Array(octets[12...]))
    }
}
