import ThicketProtocol
import ThicketServer

/// A deliberate bug. Each represents mistakes that could be made; a simulation that does not find it within a minute
/// would not find them either. The bugs are in the simulation's own wrappers around the real parts.
public enum Mutant: String, CaseIterable, Sendable {
    /// A change is durable and its author gets no answer, one in twenty.
    case lostAcknowledgement
    /// A whole group is durable and the loop never receives the outcome, one in ten.
    case groupWithoutAnswer
    /// Groups reach the loop late and out of order.
    case swappedGroups
    /// Every other broadcast of changes is not sent.
    case silentFeed
    /// Changes are sent with an `sv` that is one too low.
    case staleSource
    /// Changes are sent with the position of the previous change.
    case staleVersion
    /// Changes are sent before they are on disk: they are written with the next group.
    case broadcastBeforeCommit
    /// A group is acknowledged and never written, one in twenty.
    case forgottenCommit
    /// A ccid that was applied is not recognised again.
    case noDuplicateCheck
    /// A catch-up from disk omits its first change.
    case catchUpSkipsOne
    /// A catch-up from disk begins one change too early.
    case catchUpRepeatsOne
    /// An index page omits its last object.
    case indexLeavesOut
    /// Readers see what is committed but not published.
    case readsAhead
    /// A late edit is rebased over the newest change that it missed as if that change had inserted at the very
    /// beginning.
    case rebaseMisplaces
    /// Edits of Thicket's library are rebased by the rule for the older libraries.
    case wrongRule
    /// An object is read from disk with the version before its newest.
    case staleHead
    /// A client sends edits that it has not stored.
    case unsavedPending
    /// A client stores the server's changes but not the outcome of its own edits, one in twenty.
    case tornTurn
    /// A client stores positions but not the objects of others' changes, one in twenty.
    case lostGhost
    /// The server's disk only pretends to sync, one in seven times.
    case lyingDisk
    /// A restore uses the backup unchanged: positions and versions are used again with other content.
    case plainRestore
    /// The table of heads is marked as complete before the newest heads have been written into it.
    case eagerHeads
    /// Changes are sent to the bucket of the same name of another user, one group in ten.
    case mixedFeed
    /// A token opens the account of another user, one time in five.
    case wrongGrant
    /// The snapshot of a sealed object lacks the effect of the last operation.
    case forgetfulCompaction
    /// A client that sends a sealed operation again seals it again.
    case freshSealing
    /// The server accepts clear text in sealed buckets.
    case acceptsClear
    /// A client removes a sealed object without its tombstone.
    case bareRemoval
    /// Only the first half of a batch is made, one in three.
    case batchInParts
    /// A move below the moved node itself is accepted.
    case noCycleCheck
    /// A second node with a name is accepted below one parent.
    case noNameCheck
    /// The answer of a batch is not stored with its changes.
    case unstoredAnswer
    /// The changes of a batch are sent in two messages.
    case dividedBatch
    /// A device removes nodes that its user has not seen, although the user keeps them.
    case removesUnknown
    /// A device drops an operation when the answer to a repeated batch arrives.
    case forgottenOperation
    /// A device stores the position of changes before it has applied them.
    case earlyPosition
    /// The bytes of parts and blobs are not synced.
    case unsyncedBlob
    /// A record that names a blob is not counted as a reference to it.
    case uncountedReference

    /// The kind of run that can show it.
    public var kind: Kind {
        switch self {
        case .lyingDisk, .plainRestore, .eagerHeads: .disks
        default: .storm
        }
    }
    var needsSealing: Bool {
        switch self {
        case .forgetfulCompaction, .freshSealing, .acceptsClear, .bareRemoval: true
        default: false
        }
    }
    var needsTrees: Bool {
        switch self {
        case .batchInParts, .noCycleCheck, .noNameCheck, .unstoredAnswer, .dividedBatch, .removesUnknown,
            .forgottenOperation, .earlyPosition:
            true
        default: needsBlobs
        }
    }
    var needsBlobs: Bool { self == .unsyncedBlob || self == .uncountedReference }
    /// The bucket that is sealed if the seed seals none: objects are removed only in `scratch`.
    var sealing: SealingShare { self == .bareRemoval ? .scratch : .notes }
    var needsAccounts: Bool { self == .mixedFeed || self == .wrongGrant }
}

/// One mutant in one run.
final class Mutation {
    let mutant: Mutant
    private var random: SimulationRandom
    /// The group that `broadcastBeforeCommit` has not written yet; lost with the process.
    var late: WriteBatch?
    private var lastVersion = [UInt8]()

    /// All buckets of the run.
    private let ids: [BucketID]
    let accounts: [Account]

    init(_ mutant: Mutant, _ names: WorldNames, _ random: SimulationRandom) {
        self.mutant = mutant
        (ids, accounts) = (names.ids, names.accounts)
        self.random = random
    }

    func strikes(oneIn count: Int) -> Bool { random.below(count) == 0 }

    func writer(_ made: any StoreWriter) -> any StoreWriter {
        late = nil
        return MutantWriter(made, self)
    }

    func reader(_ made: any StoreReader) -> any StoreReader { MutantReader(made, self) }

    // MARK: - Between shard and loop

    /// Microseconds by which a group's answer is late.
    var lateness: Int64 {
        guard mutant == .swappedGroups else { return 0 }
        return strikes(oneIn: 5) ? 2_000_000 : 0
    }

    /// The outcome of a group that reaches the loop; nil: none.
    func passOn(_ outcome: CommitOutcome) -> CommitOutcome? {
        switch mutant {
        case .groupWithoutAnswer: return outcome.appliedCount > 0 && strikes(oneIn: 10) ? nil : outcome
        case .lostAcknowledgement:
            var outcome = outcome
            for place in outcome.buckets.indices {
                outcome.buckets[place].events.removeAll { event in
                    if case .applied = event { strikes(oneIn: 20) } else { false }
                }
            }
            return outcome
        case .mixedFeed:
            guard ids.count > 2, strikes(oneIn: 10) else { return outcome }
            var outcome = outcome
            for place in outcome.buckets.indices {
                let own = outcome.buckets[place].bucket
                guard let other = ids.first(where: { $0 != own && $0.name == own.name }) else { continue }
                outcome.buckets[place].bucket = other
            }
            return outcome
        default: return outcome
        }
    }

    // MARK: - On the wire

    func received(_ text: [UInt8]) -> [UInt8] {
        guard mutant == .wrongRule else { return text }
        return text.replacing("\"library\":\"thicket\"", with: "\"library\":\"another\"")
    }

    /// nil: it is not sent.
    func sent(_ text: [UInt8], _ isBroadcast: Bool) -> [UInt8]? {
        switch mutant {
        case .silentFeed:
            return isBroadcast && strikes(oneIn: 2) && text.contains("\"clientid\"") ? nil : text
        case .staleSource:
            guard let place = text.place(behind: "\"sv\":"), text[place] > 0x31, text[place] <= 0x39 else {
                return text
            }
            var stale = text
            stale[place] -= 1
            return stale
        case .staleVersion:
            guard let place = text.place(behind: "\"cv\":\""), place + 32 <= text.count else { return text }
            let current = Array(text[place..<place + 32])
            defer { lastVersion = current }
            guard lastVersion.count == 32, strikes(oneIn: 10) else { return text }
            return Array(text[..<place]) + lastVersion + Array(text[(place + 32)...])
        default: return text
        }
    }
}

extension [UInt8] {
    func place(behind word: String) -> Int? {
        let word = Array(word.utf8)
        guard count > word.count else { return nil }
        for start in 0..<(count - word.count) where self[start] == word[0] {
            if self[start..<start + word.count].elementsEqual(word) { return start + word.count }
        }
        return nil
    }

    func contains(_ word: String) -> Bool { place(behind: word) != nil }

    fileprivate func replacing(_ word: String, with other: String) -> [UInt8] {
        guard let end = place(behind: word) else { return self }
        return Array(self[..<(end - word.utf8.count)]) + Array(other.utf8) + Array(self[end...])
    }
}
