import ThicketCrypto
internal import ThicketKeyLog
import ThicketProtocol
import ThicketTree
import ThicketTreeShape

/// Messages of other accounts, as they arrive (decision 0067): kept until keys of the author are known, verified, and
/// only then shown. What is not verified for good is quarantined.
enum Letters {
    /// Whether a record that was opened may be shown now. Records of this account always may, outside of shared
    /// branches.
    static func admit(
        _ opened: OpenedNode, _ text: [UInt8], _ version: Version, _ skeleton: inout TreeSkeleton
    ) throws(TreeError) -> Bool {
        if let isAdmitted = try Branches.admit(opened, text, version, &skeleton) { return isAdmitted }
        guard opened.isFromOthers else {
            if opened.metadata.origin != nil { try expectMoved(opened, &skeleton) }
            return true
        }
        let arrival = Arrival(opened: opened, text: text, version: version)
        if opened.record.parent == .trunk(.inbox) { return try admitMessage(arrival, &skeleton) }
        return try admitAttachment(arrival, &skeleton)
    }

    /// A record as it arrived.
    private struct Arrival {
        let opened: OpenedNode
        let text: [UInt8]
        let version: Version

        var id: NodeID { opened.id }
    }

    /// Another device of this account has moved a message: it is shown, and its author once this device has verified
    /// the statement.
    private static func expectMoved(_ opened: OpenedNode, _ skeleton: inout TreeSkeleton) throws(TreeError) {
        guard skeleton.messages.identity != nil,
            let statement = (try? MessageCheck.keptStatement(of: opened)) ?? nil
        else { return }
        let known = try skeleton.store.row(opened.id)?.origin
        if let known, known.isVerified, known.statement == statement.hash { return }
        try expect(opened.id, statement, &skeleton)
    }

    private static func admitMessage(
        _ arrival: Arrival, _ skeleton: inout TreeSkeleton
    ) throws(TreeError) -> Bool {
        let statement: OriginStatement
        do throws(OriginFault) { statement = try MessageCheck.statement(of: arrival.opened) } catch {
            try quarantine(arrival, error, &skeleton)
            return false
        }
        let row = try skeleton.store.row(arrival.id)
        if let origin = row?.origin, origin.isVerified, origin.statement == statement.hash { return true }
        switch row?.state {
        case nil, .awaiting, .unopened, .quarantined: break
        case .open, .leaving, .covered:
            try quarantine(arrival, .replaced, &skeleton)
            return false
        }
        try wait(arrival, statement, row, &skeleton)
        return false
    }

    private static func admitAttachment(
        _ arrival: Arrival, _ skeleton: inout TreeSkeleton
    ) throws(TreeError) -> Bool {
        // Without its message it waits, like each node below one that is not shown.
        guard case .node(let above) = arrival.opened.record.parent, let message = try skeleton.store.row(above),
            message.state == .open || message.state.isConcealed
        else { return true }
        let opened = try skeleton.open(message)
        guard let statement = opened.flatMap({ (try? MessageCheck.keptStatement(of: $0)) ?? nil }) else {
            try quarantine(arrival, .otherNode, &skeleton)
            return false
        }
        var row = try skeleton.store.row(arrival.id)
        if let row, row.record == arrival.text, let origin = row.origin, origin.statement == statement.hash {
            return true
        }
        guard let origin = message.origin, origin.isVerified, let keys = skeleton.messages.keys[statement.question]
        else {
            try wait(arrival, statement, row, &skeleton)
            return false
        }
        do throws(OriginFault) {
            try MessageCheck.verify(attachment: arrival.opened, of: statement, keys)
        } catch {
            try quarantine(arrival, error, &skeleton)
            return false
        }
        if row == nil { row = NodeRow(arrival.id, parent: .node(above), name: arrival.opened.name, state: .awaiting) }
        row?.origin = origin
        if let row { try skeleton.write(row) }
        return true
    }

    // MARK: - Waiting

    private static func wait(
        _ arrival: Arrival, _ statement: OriginStatement, _ known: NodeRow?, _ skeleton: inout TreeSkeleton
    ) throws(TreeError) {
        let record = arrival.opened.record
        var row =
            known ?? NodeRow(arrival.id, parent: record.parent, name: arrival.opened.name, state: .awaiting)
        row.state = .awaiting
        (row.version, row.record, row.changed) = (arrival.version, arrival.text, record.stamps.changed)
        row.scan = skeleton.listing ?? row.scan
        row.show(arrival.opened, except: [])
        try skeleton.write(row)
        if skeleton.hasQuarantined { try skeleton.store.releaseQuarantine(row.id) }
        try expect(row.id, statement, &skeleton)
    }

    private static func expect(
        _ id: NodeID, _ statement: OriginStatement, _ skeleton: inout TreeSkeleton
    ) throws(TreeError) {
        try expect(id, statement.question, &skeleton)
    }

    /// A node waits for keys.
    static func expect(_ id: NodeID, _ question: KeyQuestion, _ skeleton: inout TreeSkeleton) throws(TreeError) {
        skeleton.hasWritten = true
        skeleton.messages.awaiting[question, default: []].insert(id)
        let isBaseline = try skeleton.store.namedValue(begun) == nil
        try skeleton.store.setAwaiting(id, question, isBaseline: isBaseline)
    }

    /// Set when the tree was read for the first time: what arrives later has its place in a chain without gaps.
    private static let begun = "messages"

    static func end(_ id: NodeID, _ question: KeyQuestion, _ skeleton: inout TreeSkeleton) throws(TreeError) {
        skeleton.hasWritten = true
        skeleton.messages.awaiting[question]?.remove(id)
        if skeleton.messages.awaiting[question]?.isEmpty == true { skeleton.messages.awaiting[question] = nil }
        try skeleton.store.endAwaiting(id)
    }

    private static func quarantine(
        _ arrival: Arrival, _ fault: OriginFault, _ skeleton: inout TreeSkeleton
    ) throws(TreeError) {
        try skeleton.quarantine(
            IntegrityFault(arrival.id, .origin, fault.description), arrival.version, arrival.text)
    }

    // MARK: - Verifying

    /// Verifies what waited for keys that are known now. Runs at the end of each turn.
    ///
    /// - Parameter isReading: whether the tree is still being read, in the order of its keys: a message that another
    ///   one is missing may be on the next page.
    static func verify(_ skeleton: inout TreeSkeleton, isReading: Bool) throws(TreeError) {
        try Branches.verify(&skeleton)
        try Rekeying.advance(&skeleton)
        for question in skeleton.messages.awaiting.keys {
            guard let keys = skeleton.messages.keys[question] else { continue }
            // Messages before their attachments: these are found again when it is shown.
            for id in try inOrder(skeleton.messages.awaiting[question] ?? [], &skeleton) {
                try verify(id, question, keys, &skeleton)
            }
        }
        if !isReading { try reportGaps(&skeleton) }
        if skeleton.branches.hasReachedLog, try skeleton.store.namedValue(begun) == nil {
            skeleton.hasWritten = true
            try skeleton.store.setNamedValue(begun, "1")
        }
    }

    /// In the order in which their author has numbered them, so that none is missing for a moment.
    private static func inOrder(
        _ ids: Set<NodeID>, _ skeleton: inout TreeSkeleton
    ) throws(TreeError) -> [NodeID] {
        let ids = ids.sorted()
        guard ids.count > 1 else { return ids }
        var numbered = [(counter: UInt64, id: NodeID)]()
        for id in ids {
            let opened = try skeleton.store.row(id).flatMap { (row) throws(TreeError) in try skeleton.open(row) }
            let statement = opened.flatMap { (try? MessageCheck.keptStatement(of: $0)) ?? nil }
            numbered.append((statement?.fields.counter ?? .max, id))
        }
        return numbered.sorted { ($0.counter, $0.id) < ($1.counter, $1.id) }.map(\.id)
    }

    /// Reports the messages that still miss others, once each.
    private static func reportGaps(_ skeleton: inout TreeSkeleton) throws(TreeError) {
        for id in skeleton.messages.gaps.sorted() {
            guard let missing = try skeleton.store.row(id)?.origin?.missing, missing > 0 else { continue }
            let fault = IntegrityFault(id, .messagesMissing, "\(missing) messages before it have not arrived")
            skeleton.events.append(.integrity(fault))
        }
        skeleton.messages.gaps = []
    }

    /// An account has no keys with which something was signed.
    static func refuse(_ question: KeyQuestion, _ skeleton: inout TreeSkeleton) throws(TreeError) {
        for id in (skeleton.messages.awaiting[question] ?? []).sorted() {
            try end(id, question, &skeleton)
            guard let row = try skeleton.store.row(id), row.state == .awaiting, let text = row.record else { continue }
            let fault = IntegrityFault(id, .origin, "the account that it names has no such keys")
            try skeleton.quarantine(fault, row.version, text)
        }
    }

    private static func verify(
        _ id: NodeID, _ question: KeyQuestion, _ keys: PublicKeys, _ skeleton: inout TreeSkeleton
    ) throws(TreeError) {
        if try KeyRenewal.opens(id, question, &skeleton) { return }
        let isBaseline = try skeleton.store.awaitsSinceBaseline(id) ?? false
        try end(id, question, &skeleton)
        guard let row = try skeleton.store.row(id), let text = row.record, let opened = try skeleton.open(row) else {
            return
        }
        let arrival = Arrival(opened: opened, text: text, version: row.version)
        guard opened.isFromOthers else { return try verifyMoved(arrival, row, keys, isBaseline, &skeleton) }
        guard opened.record.parent == .trunk(.inbox) else {
            return try skeleton.show(id, opened.record, text, row.version, reports: true)
        }
        let statement: OriginStatement
        do throws(OriginFault) {
            statement = try MessageCheck.statement(of: opened)
            try MessageCheck.verify(opened, statement, keys)
        } catch { return try quarantine(arrival, error, &skeleton) }
        let (origin, verdict) = try receive(statement, id, isBaseline, &skeleton)
        if verdict == .repeated, !skeleton.isLazy { return try dropRepeated(id, &skeleton) }
        var verified = row
        verified.origin = origin
        try skeleton.write(verified)
        try skeleton.show(id, opened.record, text, row.version, reports: true)
        report(verdict, id, &skeleton)
    }

    private static func verifyMoved(
        _ arrival: Arrival, _ row: NodeRow, _ keys: PublicKeys, _ isBaseline: Bool, _ skeleton: inout TreeSkeleton
    ) throws(TreeError) {
        guard let statement = (try? MessageCheck.keptStatement(of: arrival.opened)) ?? nil else { return }
        guard statement.isSigned(by: keys) else {
            return try skeleton.reportFault(
                IntegrityFault(arrival.id, .origin, OriginFault.badStatement.description))
        }
        let (origin, verdict) = try receive(statement, arrival.id, isBaseline, &skeleton)
        var row = row
        row.origin = origin
        try skeleton.write(row)
        if let (node, path) = try skeleton.shown(row) { skeleton.events.append(.modified(node, .origin, path)) }
        report(verdict, arrival.id, &skeleton)
    }

    /// A message that this device has had, and that was removed, is delivered again.
    private static func dropRepeated(_ id: NodeID, _ skeleton: inout TreeSkeleton) throws(TreeError) {
        let count = try skeleton.store.repetitions() + 1
        try skeleton.store.setNamedValue(TreeStore.repetitions, String(count))
        try skeleton.removeRow(id)
    }

    // MARK: - Chains

    private static func receive(
        _ statement: OriginStatement, _ id: NodeID, _ isBaseline: Bool, _ skeleton: inout TreeSkeleton
    ) throws(TreeError) -> (MessageOrigin, OriginChain.Verdict) {
        let (fields, name) = (statement.fields, statement.chainName)
        var chain = try skeleton.store.chain(name)
        let verdict = chain.receive(statement, isBaseline: isBaseline)
        skeleton.hasWritten = true
        try skeleton.store.setChain(name, chain)
        if let head = fields.head { skeleton.actions.append(.message(.hear(head, from: fields.author))) }
        var origin = MessageOrigin(statement)
        origin.isVerified = true
        switch verdict {
        case .new, .repeated: break
        case .gap(let count):
            origin.missing = count
            try skeleton.store.setGap(name, before: fields.counter, from: fields.counter - count, id)
        case .late: try closeGap(name, fields.counter, chain, &skeleton)
        case .fork(let fork):
            origin.isForked = true
            try skeleton.store.keepFork(name, fork, statement.octets)
        }
        return (origin, verdict)
    }

    /// A missing message has arrived: the one behind it is missing fewer.
    private static func closeGap(
        _ name: [UInt8], _ counter: UInt64, _ chain: OriginChain, _ skeleton: inout TreeSkeleton
    ) throws(TreeError) {
        guard let (node, numbers) = try skeleton.store.gap(name, around: counter),
            var row = try skeleton.store.row(node), var origin = row.origin, origin.missing > 0
        else { return }
        let listed = UInt64(chain.missing.count { numbers.contains($0) })
        origin.missing = chain.lost == 0 ? listed : max(listed, origin.missing - 1)
        row.origin = origin
        try skeleton.write(row)
        if let (node, path) = try skeleton.shown(row) { skeleton.events.append(.modified(node, .origin, path)) }
    }

    private static func report(_ verdict: OriginChain.Verdict, _ id: NodeID, _ skeleton: inout TreeSkeleton) {
        switch verdict {
        case .new, .late, .repeated: break
        case .gap: skeleton.messages.gaps.insert(id)
        case .fork:
            let fault = IntegrityFault(id, .messagesForked, "its author has shown another message in its place")
            skeleton.events.append(.integrity(fault))
        }
    }
}

extension OriginStatement {
    /// The keys that have signed it.
    var question: KeyQuestion { KeyQuestion(fields.author, keyID: fields.keyID) }

    /// Names its chain in a store: author, device and conversation, hashed.
    var chainName: [UInt8] {
        let author = Array(fields.author.text.utf8)
        return Digest256.of(fields.device.bigEndianBytes + fields.conversation.octets + author).bytes
    }
}

extension TreeStore {
    fileprivate static let repetitions = "repetitions"

    /// Messages that were delivered again, and dropped.
    package func repetitions() throws(TreeError) -> Int { try namedValue(Self.repetitions).flatMap { Int($0) } ?? 0 }
}
