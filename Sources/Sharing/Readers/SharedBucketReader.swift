/// Two lists of one bucket that its owner has signed and that cannot both be: the owner, or whoever has the owner's
/// key, tells two groups of readers two things. Both are kept, as evidence.
public struct ForkedLists: Error, Sendable, Equatable {
    /// What this device has taken before.
    public let own: SignedReaderList
    /// What was shown now: the same version, or the next one of another list; where nobody has verified the keys that
    /// signed it, the newest that followed it.
    public let other: SignedReaderList
}

/// What one device knows of who reads a bucket: all lists from the first to the newest that it has seen. It goes
/// forward only.
///
/// Pure: lists come in, verdicts go out. It never takes a list because the server shows it, only because the owner has
/// signed it and it follows what was there. A device that has seen no list yet cannot tell whether the newest one is
/// kept from it.
public struct SharedBucketReader: Sendable, Equatable {
    /// What a device is to do.
    public enum Verdict: Sendable, Equatable {
        /// The lists were taken: seal under the newest from now on. Keep the state before anything is sealed.
        case taken(Step)
        /// Nothing that was not known.
        case known
        /// The server shows nothing newer than this version, and this device has seen a newer one.
        case older(UInt64)
        /// Lists are missing before what was shown: fetch these versions, and show them together.
        case needs(ClosedRange<UInt64>)
        /// Nothing more is taken, and nothing sealed: the user has to ask the owner which of them is true.
        case forked(ForkedLists)
        /// Nothing was taken.
        case refused(ReaderListError)
    }

    /// From one newest list to another.
    public struct Step: Sendable, Equatable {
        /// nil: none was known.
        public let from: UInt64?
        public let to: UInt64
        /// Secrets of epochs that have begun are to be opened before anything is sealed.
        public let beganEpoch: Bool
        /// Who reads now and did not, or not with these keys.
        public let added: [ListedReader]
        /// Who read before and does no more, or not with those keys.
        public let removed: [ListedReader]
    }

    public let bucket: SharedBucket
    /// From version 1 on, each following the one before.
    public internal(set) var lists: [SignedReaderList] = []
    /// What keeps the device from taking and sealing anything.
    public internal(set) var fork: ForkedLists?

    public init(bucket: SharedBucket) { self.bucket = bucket }

    /// The newest list; nil: none has been seen.
    public var newest: VerifiedReaderList? { lists.last.map { VerifiedReaderList(kept: $0.list) } }

    /// Version of the newest list; 0: none has been seen.
    public var version: UInt64 { UInt64(lists.count) }

    /// The list of a version, if it has been seen.
    public func list(_ version: UInt64) -> ReaderList? {
        (1...max(1, self.version)).contains(version) && !lists.isEmpty ? lists[Int(version) - 1].list : nil
    }

    /// Takes lists that the server shows.
    ///
    /// - Parameters:
    ///   - shown: ascending, without gaps between them; some may be known. The newest has to be signed with the owner's
    ///     key of today; those before it are bound to it by their digests.
    ///   - keys: what was verified.
    public mutating func take(_ shown: [SignedReaderList], keys: VerifiedKeys) -> Verdict {
        if let fork { return .forked(fork) }
        guard let first = shown.first, let last = shown.last else { return .known }
        do throws(ReaderListError) {
            for signed in shown where signed.list.bucket != bucket { throw .otherBucket }
            for (one, next) in zip(shown, shown.dropFirst()) {
                try next.list.check(follows: one.list)
            }
            if let found = try conflict(shown, keys) {
                fork = found
                return .forked(found)
            }
            guard last.list.version > version else {
                return last.list.version == version ? .known : .older(last.list.version)
            }
            guard first.list.version <= version + 1 else { return .needs((version + 1)...(first.list.version - 1)) }
            return .taken(try append(shown.filter { $0.list.version > version }, keys))
        } catch { return .refused(error) }
    }

    /// A list that contradicts one which was taken. It proves something only if the owner's keys of today have signed
    /// the newest of what was shown, which is bound to all before it: with earlier ones, whoever has stolen those could
    /// stop every device.
    private func conflict(
        _ shown: [SignedReaderList], _ keys: VerifiedKeys
    ) throws(ReaderListError) -> ForkedLists? {
        let newest = shown[shown.count - 1]
        for signed in shown {
            let list = signed.list
            if let known = self.list(list.version) {
                guard known != list else { continue }
                _ = try VerifiedReaderList(newest, of: bucket, by: keys)
                return ForkedLists(own: lists[Int(list.version) - 1], other: signed.isSigned(keys) ? signed : newest)
            }
            guard list.version == version + 1, let own = lists.last, list.previous != own.list.digest
            else { continue }
            _ = try VerifiedReaderList(newest, of: bucket, by: keys)
            return ForkedLists(own: own, other: signed.isSigned(keys) ? signed : newest)
        }
        return nil
    }

    /// - Parameter new: without gaps, the first right after the newest that is known.
    private mutating func append(
        _ new: [SignedReaderList], _ keys: VerifiedKeys
    ) throws(ReaderListError) -> Step {
        guard let first = new.first, let last = new.last else { throw .notNext }
        let before = lists.last?.list
        if let before { try first.list.check(follows: before) }
        _ = try VerifiedReaderList(last, of: bucket, by: keys)
        guard (lists + new).reduce(0, { $0 + $1.bytes.count }) <= ReaderLimits.keptBytesMax else { throw .tooMany }
        lists += new
        return Step(
            from: before?.version, to: last.list.version, beganEpoch: before.map { $0.epoch < last.list.epoch } ?? true,
            added: before.map { last.list.readers(notIn: $0) } ?? last.list.readers,
            removed: before.map { $0.readers(notIn: last.list) } ?? [])
    }
}

extension SharedBucketReader {
    private static let label: [UInt8] = Array("thicket/shared-bucket/1".utf8) + [0]

    /// The form in which a device keeps it, sealed like the rest of its store: label ‖ 0 ‖ lp(owner) ‖ lp(app) ‖
    /// lp(bucket) ‖ number of lists(4) ‖ length(4) and bytes of each ‖ 0, or 1 and both lists of a fork with their
    /// lengths.
    public var saved: [UInt8] {
        var bytes: [UInt8] = Self.label
        for name in [bucket.owner, bucket.app, bucket.bucket] {
            bytes += UInt16(name.utf8.count).octets + Array(name.utf8)
        }
        bytes += UInt32(lists.count).octets
        for signed in lists { bytes += Self.long(signed.bytes) }
        guard let fork else { return bytes + [0] }
        return bytes + [1] + Self.long(fork.own.bytes) + Self.long(fork.other.bytes)
    }

    private static func long(_ bytes: [UInt8]) -> [UInt8] { UInt32(bytes.count).octets + bytes }

    /// What was kept, looked at again: that the lists follow each other, and that the owner has signed the newest,
    /// which is bound to all before it. Whoever can write into the device's store can put back what was there before,
    /// and nothing else.
    ///
    /// - Parameter keys: what was verified. Of the owner's keys also those of before count here: the list may be older
    ///   than those of today.
    /// - Throws: `ReaderListError`: `badSignature` also when the keys that signed it have not been verified.
    public init(saved bytes: [UInt8], keys: VerifiedKeys) throws(ReaderListError) {
        try self.init(unverified: bytes)
        guard lists.last?.isSigned(keys) != false else { throw .badSignature }
        guard let fork else { return }
        // What contradicts what was taken, and is the owner's: nobody else stops a device, or accuses its owner.
        let (own, other) = (fork.own.list, fork.other.list)
        guard lists.contains(fork.own), fork.other.isSigned(keys), list(other.version) != other,
            other.version != own.version + 1 || other.previous != own.digest
        else { throw .badSignature }
    }

    /// What was kept, before anything of it is verified: only that the lists follow each other.
    package init(unverified bytes: [UInt8]) throws(ReaderListError) {
        var fields = FieldReader(bytes)
        guard fields.skip(Self.label), let owner = fields.text(), let app = fields.text(),
            let name: String = fields.text(), let count: UInt32 = fields.number()
        else { throw .malformed }
        self.init(bucket: try SharedBucket(owner: owner, app: app, bucket: name))
        guard count <= ReaderLimits.listsMax, bytes.count <= ReaderLimits.keptBytesMax * 2 else { throw .tooMany }
        for _ in 0..<count {
            let signed = try Self.list(&fields, bucket)
            if let before = lists.last?.list {
                try signed.list.check(follows: before)
            } else if signed.list.version != 1 {
                throw .notNext
            }
            lists.append(signed)
        }
        guard let mark: UInt8 = fields.number(), mark <= 1 else { throw .malformed }
        if mark == 1 {
            fork = ForkedLists(own: try Self.list(&fields, bucket), other: try Self.list(&fields, bucket))
        }
        guard fields.isAtEnd else { throw .malformed }
    }

    private static func list(
        _ fields: inout FieldReader, _ bucket: SharedBucket
    ) throws(ReaderListError) -> SignedReaderList {
        guard let bytes = fields.long() else { throw .malformed }
        let signed = try SignedReaderList(parsing: bytes)
        guard signed.list.bucket == bucket else { throw .otherBucket }
        return signed
    }
}
