internal import ThicketKeyLog
import ThicketProtocol
import ThicketTree
import ThicketTreeShape

/// The account's own keys, which another device may have replaced (decision 0066): then they are read again from the
/// account's bundle, and what did not open, or was refused, is tried again.
enum KeyRenewal {
    /// Most operations that wait for one reading; a further one is refused at once.
    static let operationsMax = 1_024
    /// Milliseconds after which an operation is sent again although the keys could not be read.
    static let pause: Int64 = 30_000

    /// Whether a question is about keys of this account: its bundle has them all.
    static func isOwn(_ question: KeyQuestion, _ skeleton: TreeSkeleton) -> Bool {
        question.keyID != nil && question.user == skeleton.messages.identity?.user
    }

    /// The answer to a question about keys of this account.
    ///
    /// - Parameter identity: as read now; nil: it could not be read.
    static func answer(_ question: KeyQuestion, _ identity: MessageIdentity?) -> KeyAnswer {
        guard let identity else { return .failed(.offline) }
        guard let keys = question.keyID.flatMap({ identity.keys($0) }) else { return .failed(.absent) }
        return .found(keys, nil)
    }

    /// The account's keys were read, or could not be.
    static func renewed(_ identity: MessageIdentity?, _ skeleton: inout TreeSkeleton) {
        skeleton.messages.isRenewing = false
        if let identity, identity.user == skeleton.messages.identity?.user {
            skeleton.messages.identity = identity
            skeleton.keyring.adopt(identity)
        }
        guard identity != nil else { return }
        for id in skeleton.messages.renewals { skeleton.queue.pauses[id] = nil }
    }

    // MARK: - Records

    /// A record is sealed to keys of this account that this device does not have: it waits for them, and is not shown.
    ///
    /// - Returns: false when the account has no such keys.
    static func waits(
        _ id: NodeID, _ record: NodeRecord, _ text: [UInt8], _ version: Version, _ skeleton: inout TreeSkeleton
    ) throws(TreeError) -> Bool {
        guard let user = skeleton.messages.identity?.user, let keyID = record.keyID(for: user) else { return false }
        let question = KeyQuestion(user, keyID: keyID)
        let isAbsent = skeleton.messages.absent.contains(question)
        if id == skeleton.branches.memberRoot || record.isDeposit(id) {
            if isAbsent {
                try Branches.endWaiting(id, &skeleton)
            } else {
                try Branches.wait(id, text, version, question, &skeleton)
            }
            return !isAbsent
        }
        var row = try skeleton.store.row(id) ?? NodeRow(id, parent: record.parent, name: nil, state: .awaiting)
        // A message that is shown has no wrap for keys: only its receiver writes it again.
        guard !isAbsent, record.parent == .trunk(.inbox), row.state != .open, !row.state.isConcealed else {
            return false
        }
        row.state = .awaiting
        (row.version, row.record, row.changed) = (version, text, record.stamps.changed)
        row.scan = skeleton.listing ?? row.scan
        try skeleton.write(row)
        if skeleton.hasQuarantined { try skeleton.store.releaseQuarantine(id) }
        try Letters.expect(id, question, &skeleton)
        return true
    }

    /// Opens a record that has waited for keys of this account.
    ///
    /// - Returns: false when it has not.
    static func opens(
        _ id: NodeID, _ question: KeyQuestion, _ skeleton: inout TreeSkeleton
    ) throws(TreeError) -> Bool {
        guard isOwn(question, skeleton), let keyID = question.keyID, let row = try skeleton.store.row(id),
            row.state == .awaiting, let text = row.record,
            let record = try? NodeRecord(parsing: text, from: .server),
            record.keyID(for: question.user)?.utf8.elementsEqual(keyID.utf8) == true
        else { return false }
        try Letters.end(id, question, &skeleton)
        try skeleton.show(id, record, text, row.version, reports: true)
        return true
    }

    // MARK: - Operations

    /// The server does not accept the signature of an operation: the account may have other keys by now.
    ///
    /// - Returns: whether it is sent again when they were read, once.
    static func retries(
        _ operation: PendingOperation, _ skeleton: inout TreeSkeleton
    ) throws(TreeError) -> Bool {
        if skeleton.messages.renewals.count >= operationsMax {
            skeleton.messages.renewals = skeleton.messages.renewals.filter { skeleton.queue[$0] != nil }
        }
        guard skeleton.messages.identity != nil, skeleton.messages.renewals.count < operationsMax,
            skeleton.messages.renewals.insert(operation.id).inserted
        else { return false }
        if !skeleton.messages.isRenewing {
            skeleton.messages.isRenewing = true
            skeleton.actions.append(.message(.renewKeys(nil)))
        }
        var operation = operation
        operation.trouble = "the keys of this account are read again"
        skeleton.queue.pauses[operation.id] = skeleton.time.monotonic + pause
        try skeleton.write(operation)
        return true
    }
}
