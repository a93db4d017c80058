import ThicketCrypto
import ThicketPlatform

/// The first 16 bytes of a chain head.
public struct Head: Sendable, Hashable {
    /// Bytes of a head that are kept.
    public static let byteCount = 16
    let high: UInt64
    let low: UInt64

    /// - Returns: nil for fewer than 16 bytes; further bytes are ignored.
    public init?(_ bytes: some Collection<UInt8>) {
        guard bytes.count >= Self.byteCount else { return nil }
        high = bytes.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
        low = bytes.dropFirst(8).prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// Reads base64url of exactly 16 bytes.
    init?(text: String) {
        guard let bytes = Base64.decodeURL(Array(text.utf8)[...]), bytes.count == Self.byteCount else {
            return nil
        }
        self.init(bytes)
    }

    /// The 16 bytes.
    public var bytes: [UInt8] { high.bigEndianBytes + low.bigEndianBytes }
    /// base64url.
    var text: String { Base64.encodeURL(bytes) }
}

/// The hash chain over one incarnation's sealed operations, and the heads that are kept: those of the last 64
/// positions, and those of every 64th position before, the newest 64 of them. The kept positions follow from the
/// position alone, so two devices at one position can compare all kept heads.
public struct HeadChain: Sendable, Equatable {
    /// Number of operations so far.
    public private(set) var position: Int
    /// head(position), 32 bytes.
    public private(set) var newest: [UInt8]
    /// Heads of the positions max(0, position − 63) … position.
    public private(set) var recent: [Head]
    /// Heads of earlier positions divisible by 64, the newest 64, ascending.
    public private(set) var old: [Head]

    private static let step: Int = SealedLimits.windowPositions

    /// head(0) = SHA-256("thicket/chain/1" ‖ 0 ‖ lp(owner) ‖ lp(app) ‖ lp(bucket) ‖ lp(server key) ‖ incarnation id).
    public init(_ place: SealedPlace, incarnation: [UInt8]) {
        position = 0
        newest = Hash.sha256(Array("thicket/chain/1".utf8) + [0] + place.prefixed + incarnation)
        recent = Head(newest).map { [$0] } ?? []
        old = []
    }

    /// Restores a chain from a snapshot.
    /// - Returns: nil when these are not the heads that a chain at that position keeps.
    init?(position: Int, newest: [UInt8], recent: [Head], old: [Head]) {
        let first = Self.firstRecent(position)
        guard position >= 0, newest.count == 32, recent.count == position - first + 1,
            recent.last == Head(newest), old.count == Self.oldCount(position)
        else { return nil }
        (self.position, self.newest, self.recent, self.old) = (position, newest, recent, old)
    }

    private static func firstRecent(_ position: Int) -> Int { max(0, position - step + 1) }
    private static func oldCount(_ position: Int) -> Int {
        min(SealedLimits.oldHeadsMax, (firstRecent(position) + step - 1) / step)
    }

    /// head(p) = SHA-256(head(p − 1) ‖ the decoded bytes of sealed operation p).
    public mutating func append(_ sealed: [UInt8]) {
        newest = Hash.sha256(newest + sealed)
        position += 1
        guard let head = Head(newest) else { return }
        recent.append(head)
        guard recent.count > Self.step else { return }
        let leaving = recent.removeFirst()
        guard (position - Self.step) % Self.step == 0 else { return }
        old.append(leaving)
        if old.count > SealedLimits.oldHeadsMax { old.removeFirst() }
    }

    /// The head at a position; nil when it is not kept.
    public subscript(at: Int) -> Head? {
        let first = Self.firstRecent(position)
        if at >= first { return at <= position ? recent[at - first] : nil }
        guard at >= 0, at % Self.step == 0 else { return nil }
        let newestOld = (first - 1) / Self.step
        let index = old.count - 1 - (newestOld - at / Self.step)
        return old.indices.contains(index) ? old[index] : nil
    }

    /// Positions whose heads are kept, ascending.
    public var keptPositions: [Int] {
        let first = Self.firstRecent(position)
        let newestOld = first == 0 ? -1 : (first - 1) / Self.step
        let marks = old.indices.map { (newestOld - (old.count - 1 - $0)) * Self.step }
        return marks + Array(first...position)
    }

    /// The smallest position at which both keep a head and the heads differ; nil when none does.
    public func firstDifference(to other: HeadChain) -> Int? {
        keptPositions.first { place in
            guard let own = self[place], let theirs = other[place] else { return false }
            return own != theirs
        }
    }
}
