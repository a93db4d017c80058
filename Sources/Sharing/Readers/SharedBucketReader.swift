/// Two contradicting lists of one bucket that were both signed with the owner's key: the owner, or an attacker with the
/// owner's key, shows different lists to different readers. Both are kept as evidence.
public struct ForkedLists: Error, Sendable, Equatable {
    /// The list that this device accepted before.
    public let own: SignedReaderList
    /// The list received now: another list of the same version, or a next list with another predecessor; if the keys
    /// that signed it are not verified, the newest list that followed it.
    public let other: SignedReaderList
}

/// One device's knowledge of a bucket's readers: all lists from the first to the newest received. It never goes back.
///
/// Pure: takes lists, returns verdicts. It accepts a list only if the owner has signed it and it follows the known
/// lists, never because the server shows it. A device that has not received any list yet cannot detect that the newest
/// one is withheld.
public struct SharedBucketReader: Sendable, Equatable {
    /// The verdict on received lists.
    public enum Verdict: Sendable, Equatable {
        /// The lists were accepted: seal under the newest one from now on. Store the state before sealing.
        case accepted(Step)
        /// All lists were known already.
        case known
        /// The server's newest list has this version, but this device has received a newer one.
        case older(UInt64)
        /// Lists are missing before the received ones: fetch these versions, and pass them together.
        case needs(ClosedRange<UInt64>)
        /// No more lists are accepted and no values sealed: the user must ask the owner which list is valid.
        case forked(ForkedLists)
        /// No list was accepted.
        case refused(ReaderListError)
    }

    /// The difference between two newest lists.
    public struct Step: Sendable, Equatable {
        /// Version before; nil: no list was known.
        public let from: UInt64?
        /// Version now.
        public let to: UInt64
        /// Whether epochs have begun, whose secrets must be opened before sealing.
        public let beganEpoch: Bool
        /// New readers, or readers with new keys.
        public let added: [ListedReader]
        /// Former readers, or readers with their former keys.
        public let removed: [ListedReader]
    }

    /// The bucket.
    public let bucket: SharedBucket
    /// From version 1 on, each following the previous one.
    public internal(set) var lists: [SignedReaderList] = []
    /// While set, the device accepts no lists and seals no values.
    public internal(set) var fork: ForkedLists?

    /// Creates a state without lists.
    public init(bucket: SharedBucket) { self.bucket = bucket }

    /// The newest list; nil: none has been received.
    public var newest: VerifiedReaderList? { lists.last.map { VerifiedReaderList(kept: $0.list) } }

    /// Version of the newest list; 0: none has been received.
    public var version: UInt64 { UInt64(lists.count) }

    /// The list of a version; nil if it has not been received.
    public func list(_ version: UInt64) -> ReaderList? {
        (1...max(1, self.version)).contains(version) && !lists.isEmpty ? lists[Int(version) - 1].list : nil
    }

    /// Processes lists from the server.
    ///
    /// - Parameters:
    ///   - shown: ascending, without gaps; known lists may be included. The newest must be signed with the owner's
    ///     current key; the earlier ones are bound to it by their digests.
    ///   - keys: the verified keys.
    public mutating func accept(_ shown: [SignedReaderList], keys: VerifiedKeys) -> Verdict {
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
            return .accepted(try append(shown.filter { $0.list.version > version }, keys))
        } catch { return .refused(error) }
    }

    /// Finds a list that contradicts an accepted one. It is evidence only if the owner's current keys have signed the
    /// newest of the received lists, which is bound to all before it: otherwise an attacker with stolen former keys
    /// could stop every device.
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

    /// - Parameter new: without gaps, beginning directly after the newest known list.
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

    /// The encoding that a device stores, sealed like the rest of its store: label ‖ 0 ‖ lp(owner) ‖ lp(app) ‖
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

    /// Restores a stored state and verifies that the lists follow each other and that the owner has signed the newest
    /// one, which is bound to all before it. An attacker with write access to the device's store can only replace the
    /// state by an earlier one.
    ///
    /// - Parameter keys: the verified keys. Former keys of the owner also count here, because the list may be older
    ///   than the current keys.
    /// - Throws: `ReaderListError`; `badSignature` also when the keys that signed it have not been verified.
    public init(saved bytes: [UInt8], keys: VerifiedKeys) throws(ReaderListError) {
        try self.init(unverified: bytes)
        guard lists.last?.isSigned(keys) != false else { throw .badSignature }
        guard let fork else { return }
        // The other list must contradict an accepted one and be signed by the owner, so that no attacker can stop a
        // device or accuse the owner.
        let (own, other) = (fork.own.list, fork.other.list)
        guard lists.contains(fork.own), fork.other.isSigned(keys), list(other.version) != other,
            other.version != own.version + 1 || other.previous != own.digest
        else { throw .badSignature }
    }

    /// Restores a stored state without verifying signatures; checks only that the lists follow each other.
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
