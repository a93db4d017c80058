public import ThicketCrypto

/// Two statements of one number of an author's device in a conversation: the author, or its server, has shown different
/// messages to different receivers, or a device was restored from a copy.
public struct OriginFork: Sendable, Hashable {
    /// The number.
    public let counter: UInt64
    /// The hash of the statement that was received before, or that another statement names.
    public let known: Digest256
    /// The hash of the other one.
    public let other: Digest256
}

/// What a receiver knows of the messages of one device of an author in one conversation (decision 0067). Pure.
public struct OriginChain: Sendable, Hashable {
    /// Missing numbers that are kept, the greatest ones.
    public static let missingMax = 64
    /// Statements of which the hash is kept, those with the greatest numbers.
    public static let recentMax = 64

    /// What a statement is for the chain.
    public enum Verdict: Sendable, Hashable {
        /// It follows the greatest one.
        case new
        /// This many messages before it have not arrived.
        case gap(UInt64)
        /// It was missing.
        case late
        /// It was received before.
        case repeated
        /// It contradicts one that was received before.
        case fork(OriginFork)
    }

    struct Link: Sendable, Hashable {
        let counter: UInt64
        let hash: Digest256
        let previous: Digest256
    }

    /// The greatest number that was received; 0: none.
    public private(set) var greatest: UInt64 = 0
    /// Numbers that have not arrived, ascending, at most `missingMax`.
    public private(set) var missing = [UInt64]()
    /// Numbers that have not arrived beside those.
    public private(set) var lost: UInt64 = 0
    /// Numbers below are not judged: they were read before the chain began.
    private(set) var first: UInt64 = 1
    /// Ascending, at most `recentMax`.
    private(set) var recent = [Link]()

    /// No statement was received.
    public init() {}

    /// Messages that have not arrived.
    public var missingCount: UInt64 { UInt64(missing.count) + lost }

    /// Receives a statement, which was verified.
    ///
    /// - Parameter isBaseline: whether the device reads the tree for the first time: then what was removed before it is
    ///   not missing, and statements arrive in no order.
    public mutating func receive(_ statement: OriginStatement, isBaseline: Bool = false) -> Verdict {
        let fields = statement.fields
        let link = Link(counter: fields.counter, hash: statement.hash, previous: fields.previous)
        if let known = recent.first(where: { $0.counter == link.counter }) {
            if known.hash == link.hash { return .repeated }
            return .fork(OriginFork(counter: link.counter, known: known.hash, other: link.hash))
        }
        let fork = fork(of: link)
        let verdict = place(link, isBaseline)
        return fork.map { .fork($0) } ?? verdict
    }

    /// Whether its neighbours name another statement than it, or it another than them.
    private func fork(of link: Link) -> OriginFork? {
        if let before = recent.first(where: { $0.counter == link.counter - 1 }), before.hash != link.previous {
            return OriginFork(counter: before.counter, known: before.hash, other: link.previous)
        }
        if let after = recent.first(where: { $0.counter == link.counter + 1 }), after.previous != link.hash {
            return OriginFork(counter: link.counter, known: after.previous, other: link.hash)
        }
        return nil
    }

    private mutating func place(_ link: Link, _ isBaseline: Bool) -> Verdict {
        if link.counter > greatest {
            let begin = max(greatest + 1, greatest == 0 && isBaseline ? link.counter : 1)
            if isBaseline { first = link.counter } else { miss(begin..<link.counter) }
            keep(link)
            greatest = link.counter
            return isBaseline || begin == link.counter ? .new : .gap(link.counter - begin)
        }
        if let place = missing.firstIndex(of: link.counter) {
            missing.remove(at: place)
        } else if link.counter >= first {
            // Older than what is kept: it is one of the lost ones, or was received before.
            if lost == 0 { return .repeated }
            lost -= 1
        }
        keep(link)
        return .late
    }

    private mutating func miss(_ numbers: Range<UInt64>) {
        let listed = numbers.suffix(Self.missingMax)
        lost += UInt64(numbers.count - listed.count)
        missing += listed
        let excess = max(0, missing.count - Self.missingMax)
        lost += UInt64(excess)
        missing.removeFirst(excess)
    }

    private mutating func keep(_ link: Link) {
        recent.insert(link, at: recent.firstIndex { $0.counter > link.counter } ?? recent.endIndex)
        recent.removeFirst(max(0, recent.count - Self.recentMax))
    }

    // MARK: - The written form, for a device's store

    /// Version (1) ‖ greatest (8) ‖ first (8) ‖ lost (8) ‖ number of missing (1) ‖ them (8 each) ‖ number of recent (1)
    /// ‖ them (number, hash, previous).
    package var octets: [UInt8] {
        [1] + greatest.octets + first.octets + lost.octets + [UInt8(missing.count)] + missing.flatMap(\.octets)
            + [UInt8(recent.count)] + recent.flatMap { $0.counter.octets + $0.hash.bytes + $0.previous.bytes }
    }

    /// - Returns: nil for bytes that are not the written form.
    package init?(octets: [UInt8]) {
        var reader = OriginReader(octets)
        guard reader.number(1) == 1, let greatest = reader.number(8), let first = reader.number(8),
            let lost = reader.number(8), let count = reader.number(1), count <= Self.missingMax
        else { return nil }
        (self.greatest, self.first, self.lost) = (greatest, first, lost)
        for _ in 0..<count {
            guard let number = reader.number(8) else { return nil }
            missing.append(number)
        }
        guard let links = reader.number(1), links <= Self.recentMax else { return nil }
        for _ in 0..<links {
            guard let counter = reader.number(8),
                let hash = reader.part(Digest256.byteCount).flatMap({ Digest256($0) }),
                let previous = reader.part(Digest256.byteCount).flatMap({ Digest256($0) })
            else { return nil }
            recent.append(Link(counter: counter, hash: hash, previous: previous))
        }
        guard reader.isAtEnd else { return nil }
    }
}
