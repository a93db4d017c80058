import ThicketFaultDisk
import ThicketServer
import ThicketTreeShape

/// Compares a server with what was acknowledged.
struct TreeSweepCheck {
    let server: TreeSweepServer
    let folder: String
    let disk: FaultVFS?
    /// Milliseconds since 1970.
    let now: Int64

    /// - Parameter answers: those of the actions before.
    static func expect(
        _ answer: TreeSweepServer.Answer, to action: TreeSweepAuthor.Action, _ answers: [TreeSweepServer.Answer]
    ) throws(SweepError) {
        let isRight =
            switch action {
            case .batch(_, _, .some): answer.code == 200
            case .batch: answer.code != 200 && answer.code < 500
            case .again(let number): answer == answers[number]
            case .abort: answer.code == 204
            case .small, .begin: answer.code == 200 && answer.id != nil
            case .part, .complete, .collect, .restart: answer.code == 200
            }
        guard isRight else { throw SweepError("\(action) was answered with \(answer)") }
    }

    /// Expects that the audit finds nothing: places, tags, counters, references, files.
    /// - Parameter allowing: a finding that is expected before the server has looked for files without a row.
    func expectSound(allowing allowed: String? = nil) throws {
        let found = try StoreCheck.run(
            folder + "/" + SQLiteStore.fileName, settings: SweepWorkload.storeSettings(disk), blobs: folder)
        let findings = found.findings.filter { finding in allowed.map { !finding.hasSuffix($0) } ?? true }
        guard findings.isEmpty else { throw SweepError("check: \(findings.prefix(3))") }
    }

    /// Expects all nodes, blobs and received parts of one of two states that one action separates.
    /// - Returns: whether it is the state after the action, and differs from the one before.
    func expect(_ before: TreeSweepState, or after: TreeSweepState) throws -> Bool {
        let nodes = try server.nodes()
        guard nodes == before.nodes || nodes == after.nodes else {
            let (lost, surplus) = Self.difference(before.nodes, nodes)
            throw SweepError("half of an action, or a lost one: \(lost) nodes missing or other, \(surplus) too many")
        }
        try expectDelivered(before, or: after, isAfter: before.nodes != after.nodes ? nodes == after.nodes : nil)
        for (id, blob) in before.blobs where after.blobs[id] != nil {
            guard try server.has(id) else { throw SweepError("the acknowledged blob \(id) is gone") }
            guard try server.bytes(of: id) == blob.content.bytes else { throw SweepError("the bytes of \(id)") }
        }
        for (node, found) in nodes {
            guard let blob = found.blob, let content = (after.blobs[blob] ?? before.blobs[blob])?.content else {
                continue
            }
            guard try server.read(blob, at: node, now: now) == content.bytes else {
                throw SweepError("node \(node) does not give its blob \(blob)")
            }
        }
        for (id, upload) in before.uploads where !upload.isComplete {
            guard let next = after.uploads[id], !next.isComplete else { continue }
            let parts = try server.parts(of: id, now: now)
            guard parts == upload.received || parts == next.received else {
                throw SweepError("upload \(id) has \(String(describing: parts)), not \(upload.received)")
            }
        }
        return before.nodes != after.nodes && nodes == after.nodes
    }

    /// Expects each message at all receivers or at none, together with the changes of the sender's tree.
    private func expectDelivered(_ before: TreeSweepState, or after: TreeSweepState, isAfter: Bool?) throws {
        let found = try TreeSweepState.receivers.map { try server.delivered(to: $0) }
        guard found.allSatisfy({ $0 == found.first }), let first = found.first else {
            throw SweepError("a message is not at all receivers")
        }
        let wanted = isAfter.map { $0 ? [after.delivered] : [before.delivered] } ?? [before.delivered, after.delivered]
        guard wanted.contains(first) else { throw SweepError("\(first.count) messages, not those of the batches") }
    }

    private static func difference(
        _ wanted: [NodeID: TreeSweepState.Node], _ found: [NodeID: TreeSweepState.Node]
    ) -> (lost: Int, surplus: Int) {
        (
            wanted.filter { found[$0.key] != $0.value }.count,
            found.keys.filter { wanted[$0] == nil }.count
        )
    }

    /// Expects that after a month the sweep of blobs leaves exactly the files that nodes refer to.
    func expectOnlyNeeded() throws {
        let month: Int64 = 30 * 86_400_000
        // What burns in between loses its blobs a day later.
        for time in [now + month, now + 2 * month] {
            _ = try server.perform(.collect, TreeSweepState(), [:], now: time)
        }
        try server.removeUnknown()
        let (files, uploads) = try server.files()
        let referred = Set(try server.nodes().values.compactMap(\.blob))
        guard files == referred else {
            let (many, missing) = (files.subtracting(referred).count, referred.subtracting(files).count)
            throw SweepError("\(many) files too many, \(missing) missing")
        }
        guard uploads == 0 else { throw SweepError("\(uploads) uploads are left") }
        try expectSound()
    }
}
