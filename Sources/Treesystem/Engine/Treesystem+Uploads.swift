import ThicketClient
import ThicketTree
import ThicketTreeShape

/// Work on the content of an operation: asking the app, sealing, or uploading.
struct ContentJob {
    /// Tells a job from a later one for the same operation.
    let number: UInt64
    let task: Task<Void, Never>
    let control: UploadControl
}

/// Contents of operations, from the app to the server.
extension Treesystem {
    func startJob(
        _ id: OperationID, _ body: @escaping @Sendable (Treesystem, _ number: UInt64, UploadControl) async -> Void
    ) {
        counter += 1
        let (number, control) = (counter, UploadControl())
        if core?.machine.push.isPaused == true { control.pause() }
        jobs[id]?.task.cancel()
        let task = Task { [weak self] in
            guard let self else { return }
            await body(self, number, control)
            await self.endJob(id, number)
        }
        jobs[id] = ContentJob(number: number, task: task, control: control)
    }

    private func endJob(_ id: OperationID, _ number: UInt64) {
        if jobs[id]?.number == number { jobs[id] = nil }
    }

    private func isCurrent(_ id: OperationID, _ number: UInt64) -> Bool { core != nil && jobs[id]?.number == number }

    // MARK: - Asking and sealing

    /// Asks the app for the content of an operation.
    func ask(_ id: OperationID, _ node: Node, _ path: TreePath) {
        if let sections = promises[id] { return seal(id, node.id, sections) }
        if RekeyContents.isAsked(for: id, self) {
            return startJob(id) { tree, number, _ in await RekeyContents.seal(id, number, node.id, tree) }
        }
        guard let delegate else { return provide(id, .unavailable) }
        startJob(id) { tree, number, _ in
            let sections: NodeSections
            do {
                sections = NodeSections(
                    metadata: try await delegate.metadata(for: node, at: path),
                    thumbnail: try await delegate.thumbnail(for: node, at: path),
                    data: try await delegate.data(for: node, at: path))
            } catch { return await tree.failed(id, number) }
            await tree.spooled(id, number, node.id, sections)
        }
    }

    /// Seals a file of the app.
    func spool(_ id: OperationID, _ path: String) {
        guard let node = core?.machine.queue[id]?.node else { return }
        seal(id, node, NodeSections(data: .file(path)))
    }

    private func seal(_ id: OperationID, _ node: NodeID, _ sections: NodeSections) {
        startJob(id) { tree, number, _ in await tree.spooled(id, number, node, sections) }
    }

    func failed(_ id: OperationID, _ number: UInt64) {
        if isCurrent(id, number) { provide(id, .unavailable) }
    }

    func spooled(_ id: OperationID, _ number: UInt64, _ node: NodeID, _ sections: NodeSections) async {
        guard isCurrent(id, number), let disk = core?.contents.disk else { return }
        do throws(ContentError) {
            let content = try await disk.spool(sections, node: node)
            guard isCurrent(id, number) else { return await disk.discardSpooled(content) }
            jobs[id] = nil
            promises[id] = nil
            switch content {
            case .none: provide(id, .none)
            case .inline(let content): provide(id, .held(content))
            case .blob(let blob): await provide(id, blob, disk)
            }
        } catch { failed(id, number) }
    }

    private func provide(_ id: OperationID, _ content: TreeMachine.Provided) {
        feed { machine throws(TreeError) in try machine.provided(id, content) }
    }

    private func provide(_ id: OperationID, _ blob: SpooledBlob, _ disk: DiskStore) async {
        let record = SpoolRecord(blob.plan)
        spools[id] = record
        provide(id, .spooled(record.octets))
        guard core != nil, self.record(of: id)?.plan.id != blob.plan.id else { return }
        // The operation was dropped or got another content meanwhile.
        spools[id] = nil
        await disk.discardSpooled(.blob(blob))
    }

    // MARK: - Uploading

    func upload(_ id: OperationID) {
        guard let contents = core?.contents, let record = record(of: id) else { return lose(id) }
        spools[id] = record
        let (map, key) = (record.plan.map, record.plan.key)
        let progress = progress
        startJob(id) { tree, number, control in
            guard let kept = await contents.disk.spooled(record.plan.id, key: key, map: map) else {
                return await tree.lose(id, number)
            }
            do throws(ContentError) {
                // A file of the cache is read here for the first time since it was stored.
                if record.wasConfirmed, record.upload.isEmpty { try kept.file.verify() }
                let blob = try await contents.uploader.upload(
                    kept.file, state: record.upload, control: control,
                    save: { await tree.save(id, number, $0) }, progress: { progress.report(id, $0) },
                    trouble: { await tree.report($0, id, number) })
                await tree.uploaded(id, number, blob)
            } catch { await tree.uploadFailed(id, number, error) }
        }
    }

    private func record(of id: OperationID) -> SpoolRecord? {
        (try? core?.machine.store.spool(id)).flatMap { $0 }.flatMap(SpoolRecord.init(octets:))
    }

    /// The sealed file of a content that the server may have lost is not evicted until the content is sent again.
    func keepFile(_ id: OperationID) {
        guard let record = record(of: id), let disk = core?.contents.disk else { return }
        spools[id] = record
        startJob(id) { _, _, _ in await disk.keepForUpload(record.plan) }
    }

    /// The sealed file is gone, for example with a folder that was deleted: the app decides.
    private func lose(_ id: OperationID) {
        jobs[id] = nil
        spools[id] = nil
        feed { machine throws(TreeError) in
            if try LostContents.loseFile(of: id, &machine.skeleton) { try machine.provided(id, .unavailable) }
        }
    }

    private func lose(_ id: OperationID, _ number: UInt64) {
        if isCurrent(id, number) { lose(id) }
    }

    private func save(_ id: OperationID, _ number: UInt64, _ state: [UInt8]) {
        guard isCurrent(id, number), var record = record(of: id) else { return }
        record.upload = state
        spools[id] = record
        feed { machine throws(TreeError) in try machine.store.setSpool(id, record.octets) }
    }

    private func report(_ trouble: ContentError?, _ id: OperationID, _ number: UInt64) {
        guard isCurrent(id, number) else { return }
        feed { machine throws(TreeError) in try machine.report(trouble?.description, of: id) }
    }

    private func uploaded(_ id: OperationID, _ number: UInt64, _ blob: BlobID) {
        guard isCurrent(id, number), var record = record(of: id) else { return }
        jobs[id] = nil
        record.blob = blob
        spools[id] = record
        feed { machine throws(TreeError) in try machine.uploaded(id, record.octets) }
    }

    private func uploadFailed(_ id: OperationID, _ number: UInt64, _ error: ContentError) {
        guard isCurrent(id, number) else { return }
        switch error {
        case .cancelled: break
        case .unreachable, .serverFull, .notFound, .disk, .diskFull, .tooManyCallers:
            feed { machine throws(TreeError) in machine.uploadFailed(id) }
        case .missing, .contentDamaged, .contentMismatch: lose(id)
        default:
            feed { machine throws(TreeError) in
                machine.skeleton.queue.asked.remove(id)
                guard let operation = machine.queue[id] else { return }
                try machine.skeleton.fail(operation, TreeError(error))
            }
        }
    }

    // MARK: - After an operation

    /// An operation was confirmed or dropped, or has another content: nothing more is done for the old one.
    func forget(_ id: OperationID) {
        jobs.removeValue(forKey: id)?.task.cancel()
        if core?.machine.queue[id] == nil {
            promises[id] = nil
            progress.remove(id)
        }
        guard let record = spools[id], let contents = core?.contents else { return }
        spools[id] = nil
        // Another operation has the same content: the file is kept until that is over too.
        if spools.has(record.plan.id) { return }
        let isConfirmed = (try? core?.machine.store.hasContent(record.plan.id)) == true
        Task { await contents.end(record, isConfirmed: isConfirmed) }
    }

    // MARK: - At the start

    /// Compares the files that wait for their upload with the operations: what a crash separated is put right.
    func compareSpools() async {
        guard let disk = core?.contents.disk else { return }
        for record in spools.records where record.wasConfirmed { await disk.keepForUpload(record.plan) }
        for id in disk.waitedAtOpening where !spools.has(id) {
            guard let store = core?.machine.store else { return }
            let isSent = (try? store.hasContent(id)) == true
            if isSent { await disk.keepUploaded(id) } else { try? await disk.remove(id) }
        }
    }
}

extension DiskStore {
    fileprivate func discardSpooled(_ content: SpooledContent) {
        guard case .blob(let blob) = content else { return }
        // A file that stays is found at the next start (`Treesystem.compareSpools`).
        try? remove(blob.plan.id)
    }

    fileprivate func keepForUpload(_ plan: ContentSpool) {
        // Without success the file can be evicted, and the next start repeats it.
        try? keepUntilUploaded(plan.id, of: plan.map)
    }

    fileprivate func keepUploaded(_ id: DataID) {
        // Without success, the next start repeats it.
        try? uploaded(id)
    }
}

extension TreeContents {
    /// Keeps the spool file of an operation that is confirmed, and removes that of one that was given up.
    fileprivate func end(_ record: SpoolRecord, isConfirmed: Bool) async {
        if isConfirmed { return await disk.keepUploaded(record.plan.id) }
        let kept = await disk.spooled(record.plan.id, key: record.plan.key, map: record.plan.map)
        if let kept, record.blob == nil, !record.upload.isEmpty { await uploader.abort(record.upload, of: kept.file) }
        // A file that stays is found at the next start.
        try? await disk.remove(record.plan.id)
    }
}
