import ThicketProtocol
import ThicketServer

extension World {
    /// At the end, the content of the backup must exist, and what clients typed and the server had not applied: for
    /// changes that it had applied, the acknowledgement may still be in flight.
    func restoreModel(_ account: Account, to backup: [BucketID: Ledger.Mirror]) {
        let notes = names.notes
        guard names.keys(notes, of: account) == nil else { return models[account.number].restoredSealed() }
        let mirror = backup[names.id(notes, of: account)]
        let last = ledger.mirror(names.id(notes, of: account))
        var (texts, own): ([EntityKey: String], [EntityKey: Set<UInt32>]) = ([:], [:])
        var shown = Set<EntityKey>()
        var sum: Int64?
        for (key, entity) in mirror?.entities ?? [:] {
            if let text = entity.object?["t"]?.stringValue { texts[key] = text }
            if let count = entity.object?["n"]?.intValue, key.text.utf8.elementsEqual("count".utf8) {
                sum = count
            }
        }
        for client in people where client.account.number == account.number {
            for key in keys(of: client, in: notes) {
                let (local, ghost) = (
                    client.object(notes, key), client.ghost(notes, key)?.object
                )
                if local != nil { shown.insert(key) }
                let confirmed = Set((ghost?["t"]?.stringValue ?? "").unicodeScalars.map(\.value))
                let typed = Set((local?["t"]?.stringValue ?? "").unicodeScalars.map(\.value))
                let applied = last.entities[key]?.object?["t"]?.stringValue ?? ""
                own[key, default: []].formUnion(
                    typed.subtracting(confirmed).subtracting(applied.unicodeScalars.map(\.value)))
                guard key.text.utf8.elementsEqual("count".utf8) else { continue }
                let open = (local?["n"]?.intValue ?? 0) - (ghost?["n"]?.intValue ?? 0)
                let isBehind: Bool = client.ghost(notes, key)?.version != last.entities[key]?.version
                sum = open != 0 && isBehind ? nil : sum.map { $0 + open }
            }
        }
        models[account.number].restored(to: texts, own: own, shown: shown, sum: sum)
    }

    /// A store that cannot be read is reported, otherwise its client's content would not be checked.
    private func keys(of client: SimulatedClient, in bucket: BucketName) -> [EntityKey] {
        do {
            return try client.machine.keys(bucket, after: nil, limit: 10_000)
        } catch {
            problem("a client's store cannot be read after a restore: \(error)")
            return []
        }
    }
}
