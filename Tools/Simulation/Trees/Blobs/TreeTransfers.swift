import ThicketCrypto
import ThicketTree
import ThicketTreeShape
import ThicketTreesystem

/// The contents of one device that are too large for a record: its sealed files, which outlive its program, and their
/// transfers, which do not.
final class TreeTransfers {
    private unowned let device: TreeDevice
    /// Whole sealed contents.
    private(set) var files = [DataID: [UInt8]]()
    /// Whole chunks of downloads that have not ended.
    private var partial = [DataID: [UInt8]]()
    private var uploads = [OperationID: TreeUpload]()
    private var downloads = [NodeID: TreeDownload]()
    /// The newest question for the content of an operation: an older one is not answered any more.
    private var questions = [OperationID: Int]()
    private var lastQuestion = 0
    /// Apart from the world's: worlds without blobs draw the same numbers as before blobs existed.
    private var random: SimulationRandom
    private let source: TreeRandom
    private var made = 0
    private var world: World { device.world }

    /// Downloads of one device at one time.
    private static let downloadsMax = 3
    /// Bytes of a content: more than a record has, in some parts; and of one with several chunks.
    private static let (bytesMin, bytesMore, bytesMost) = (8_300, 20_000, 150_000)
    /// How many of 1,000 files that no operation needs are evicted while the program does not run.
    private static let evictedPerMille = 200

    init(_ device: TreeDevice) {
        self.device = device
        random = SimulationRandom(seed: device.world.scenario.seed ^ 0xb10b_0000 &+ UInt64(device.number))
        let bytes = TreeDevice.RandomSource(random.split())
        source = TreeRandom(secret: { SecureBytes(copying: bytes.bytes($0)) }, bytes: { bytes.bytes($0) })
    }

    // MARK: - Contents

    /// Whether the next content is a large one.
    func isLarge() -> Bool { world.scenario.blobs > 0 && random.chance(world.scenario.blobs) }

    func content() -> NodeContent {
        made += 1
        let most = random.chance(30) ? Self.bytesMost : Self.bytesMore
        var bytes = Array("device \(device.number), file \(made) ".utf8)
        let count = Self.bytesMin + random.below(most)
        while bytes.count < count {
            var word = random.next()
            for _ in 0..<8 {
                bytes.append(UInt8(truncatingIfNeeded: word))
                word >>= 8
            }
        }
        return NodeContent(data: bytes)
    }

    /// The machine asks for the content of an operation.
    func question(_ id: OperationID) -> Int {
        lastQuestion += 1
        questions[id] = lastQuestion
        return lastQuestion
    }

    func isCurrent(_ id: OperationID, _ question: Int) -> Bool { questions[id] == question }

    /// Seals a content, and only then gives it to the machine.
    func provide(_ id: OperationID, _ content: NodeContent) {
        guard let plan = try? ContentSpool(content, random: source), !plan.isInline,
            let sealed = try? plan.seal(content)
        else { return world.problem("device \(device.number): a content cannot be sealed") }
        files[plan.id] = sealed
        world.treeRecords[device.account.number].seal(plan.id, sealed)
        device.provide(id, .spooled(SpoolRecord(plan).octets))
    }

    /// The machine wants a file of the app sealed.
    func spool(_ id: OperationID) {
        let (question, content) = (question(id), content())
        world.after(world.random.delay(1_000, 500_000)) { [self] in
            if isCurrent(id, question) { provide(id, content) }
        }
    }

    // MARK: - Uploads

    func upload(_ id: OperationID) {
        uploads.removeValue(forKey: id)?.end()
        guard let record = device.spool(of: id), let bytes = files[record.plan.id] else { return lose(id) }
        let upload = TreeUpload(device, id, record, bytes)
        uploads[id] = upload
        upload.proceed()
    }

    private func lose(_ id: OperationID) {
        device.feed { machine throws(TreeError) in try MachineFiles.loseFile(of: id, in: &machine) }
    }

    private func record(_ upload: TreeUpload) -> SpoolRecord? {
        guard uploads[upload.operation] === upload, let record = device.spool(of: upload.operation),
            record.plan.id == upload.content
        else { return nil }
        return record
    }

    /// The state of an upload has changed.
    func save(_ upload: TreeUpload, _ state: [UInt8]) {
        guard var record = record(upload) else { return }
        record.upload = state
        let octets = record.octets
        device.feed { machine throws(TreeError) in try machine.store.setSpool(upload.operation, octets) }
    }

    func ended(_ upload: TreeUpload, _ outcome: Result<BlobID, ContentError>) {
        let (id, known) = (upload.operation, record(upload))
        if uploads[id] === upload { uploads[id] = nil }
        guard var record = known else { return }
        switch outcome {
        case .success(let blob):
            world.tally.blobsUploaded += 1
            record.blob = blob
            let octets = record.octets
            device.feed { machine throws(TreeError) in try machine.uploaded(id, octets) }
        case .failure(.refused(let status)):
            device.feed { machine throws(TreeError) in try MachineFiles.refuse(id, .refused(status), in: &machine) }
        case .failure: device.feed { machine throws(TreeError) in machine.uploadFailed(id) }
        }
    }

    /// An operation was confirmed or dropped, or has another content.
    func forget(_ id: OperationID) {
        questions[id] = nil
        uploads.removeValue(forKey: id)?.abort()
    }

    // MARK: - Downloads

    /// Downloads the content of a node, if it is in a blob and not here.
    func fetch(_ node: NodeID) {
        guard downloads[node] == nil, downloads.count < Self.downloadsMax, let reference = device.reference(of: node),
            files[reference.id] == nil
        else { return }
        let download = TreeDownload(device, reference, partial[reference.id] ?? [])
        downloads[node] = download
        download.proceed()
    }

    /// Some nodes are looked at when they arrive.
    func arrived(_ node: NodeID) {
        guard world.scenario.blobs > 0, random.chance(300) else { return }
        device.soon { [self] in fetch(node) }
    }

    /// Chunks have arrived.
    func keep(_ download: TreeDownload) { partial[download.reference.id] = download.bytes }

    func ended(_ download: TreeDownload, _ outcome: DownloadMachine.Outcome) {
        let reference = download.reference
        if downloads[reference.node] === download { downloads[reference.node] = nil }
        switch outcome {
        case .complete:
            world.tally.blobsDownloaded += 1
            (files[reference.id], partial[reference.id]) = (download.bytes, nil)
            let sealed = world.treeRecords[device.account.number].sealed[reference.id]
            if download.bytes != sealed {
                world.problem("device \(device.number): the content of \(reference.node) is not what was sealed")
            }
        // It was replaced, or the server is away.
        case .failed(.notFound), .failed(.unreachable): break
        case .failed(let error):
            world.problem("device \(device.number): the content of \(reference.node): \(error)")
        }
    }

    /// Downloads what is not here.
    /// - Parameter contents: those that the records name.
    func complete(_ contents: [NodeID: DataID]) {
        for (node, content) in contents.sorted(by: { $0.key < $1.key }) where files[content] == nil { fetch(node) }
    }

    /// Nothing is under way, and all of it is here.
    func isComplete(_ contents: [NodeID: DataID]) -> Bool {
        uploads.isEmpty && downloads.isEmpty && contents.values.allSatisfy { files[$0] != nil }
    }

    // MARK: - The program

    /// The program was killed, and starts again.
    func die() {
        for upload in uploads.values { upload.end() }
        for download in downloads.values { download.end() }
        (uploads, downloads, questions) = ([:], [:], [:])
        guard world.scenario.blobs > 0 else { return }
        let needed = Set(device.machine.queue.ids.compactMap { device.spool(of: $0)?.plan.id })
        for id in files.keys.sorted() where !needed.contains(id) && random.chance(Self.evictedPerMille) {
            files[id] = nil
        }
    }
}
