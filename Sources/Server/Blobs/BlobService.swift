import ThicketCrypto
import ThicketNet
import ThicketPlatform
import ThicketProtocol
import ThicketTreeShape

/// Does what requests about blobs ask for, with a ledger and a blob store that are passed in. Used by one thread.
///
/// Order of an upload's completion: all parts are on disk, then the blob store makes the blob, then the ledger records
/// it, then the client is answered. A crash in between leaves an open upload, which can be completed again.
struct BlobService {
    /// What the network loop does next for a request.
    enum Step: Sendable {
        /// Answer; the request is over.
        case respond(HTTPResponse)
        /// Read the body.
        case accept
        /// Answer with bytes that follow.
        case download(HTTPResponse)
    }

    let ledger: any BlobLedger
    let store: any BlobStore
    let metrics: Metrics
    let log: Log
    /// Returns random bytes, for ids.
    let random: (Int) -> [UInt8]

    /// Bytes of a file that are handed to the loop at once, after they were read into memory.
    private static let fileWindow: Int64 = 1 << 20
    /// Bytes in memory that are handed to the loop at once.
    private static let bytesWindow: Int64 = 256 << 10

    /// Begins a request.
    /// - Parameter now: milliseconds since 1970.
    func begin(_ transfer: BlobTransfer, now: Int64) throws(StoreError) -> Step {
        let order = transfer.order
        switch order.call.action {
        case .begin(let length, let partBytes):
            let upload = upload(of: order, length: length, partBytes: partBytes, now: now)
            return .respond(try added(upload, transfer) ?? BlobAnswer.begun(upload))
        case .small(let length, let hash): return try small(length, hash, transfer, now: now)
        case .part(let id, let number, let length, let hash):
            return try part(BlobPart(number: number, sha256: hash), of: id, length: length, transfer)
        case .parts(let id):
            guard let upload = try upload(id, of: order) else { return refused(BlobAnswer.noUpload, .missing) }
            return .respond(BlobAnswer.parts(upload, upload.proof == nil ? try store.parts(of: id) : []))
        case .complete(let id, let proof): return try complete(id, proof, order, now: now)
        case .abort(let id): return try abort(id, order)
        case .read(let blob, let owner, let node, let conditions):
            return try read(blob, owner, node, conditions, transfer)
        }
    }

    func refused(_ response: HTTPResponse, _ reason: Metrics.BlobRefusal) -> Step {
        metrics.blobsRefused.add(1, reason)
        return .respond(response)
    }

    // MARK: Uploads

    private func upload(of order: BlobOrder, length: Int64, partBytes: Int, now: Int64) -> BlobUpload {
        BlobUpload(
            id: .random(random), app: order.app, user: order.user, length: length, partBytes: partBytes, begun: now)
    }

    /// The user's upload; nil for a missing one and for another user's.
    private func upload(_ id: BlobID, of order: BlobOrder) throws(StoreError) -> BlobUpload? {
        guard let upload = try ledger.upload(id), upload.app == order.app, upload.user == order.user else { return nil }
        return upload
    }

    /// - Returns: the refusal; nil when the upload was added.
    private func added(_ upload: BlobUpload, _ transfer: BlobTransfer) throws(StoreError) -> HTTPResponse? {
        let verdict = try ledger.begin(upload, within: transfer.quota)
        guard verdict == .accepted else {
            metrics.blobsRefused.add(1, .quota)
            metrics.limitHits.add(1, verdict == .appFull ? .blobAppBytes : .blobUserBytes)
            return BlobAnswer.quota(verdict)
        }
        do {
            try store.begin(upload.id, length: upload.length)
        } catch {
            giveUp(upload.id)
            throw error
        }
        return nil
    }

    /// Removes an upload that the client does not know, as far as the disk allows; the sweep removes the rest.
    private func giveUp(_ id: BlobID) {
        try? store.abort(id)
        try? ledger.remove(upload: id)
    }

    private func small(
        _ length: Int, _ hash: [UInt8], _ transfer: BlobTransfer, now: Int64
    ) throws(StoreError) -> Step {
        let whole = upload(of: transfer.order, length: Int64(length), partBytes: length, now: now)
        if let refusal = try added(whole, transfer) { return .respond(refusal) }
        let part = BlobPart(number: 1, sha256: hash)
        do {
            let writer = try store.write(part, of: whole.id, at: 0)
            transfer.upload = BlobTransfer.Receiving(part: part, writer: writer, whole: whole)
        } catch {
            giveUp(whole.id)
            throw error
        }
        return .accept
    }

    private func part(
        _ part: BlobPart, of id: BlobID, length: Int, _ transfer: BlobTransfer
    ) throws(StoreError) -> Step {
        guard let upload = try upload(id, of: transfer.order) else { return refused(BlobAnswer.noUpload, .missing) }
        guard upload.proof == nil else { return refused(BlobAnswer.isComplete, .state) }
        guard part.number <= upload.partCount, length == upload.bytes(of: part.number) else {
            return refused(BlobAnswer.badPart, .request)
        }
        let known = try store.parts(of: id).first { $0.number == part.number }
        if let known, known != part { return refused(BlobAnswer.otherPart, .state) }
        let writer = known == nil ? try store.write(part, of: id, at: upload.offset(of: part.number)) : nil
        transfer.upload = BlobTransfer.Receiving(part: part, writer: writer)
        return .accept
    }

    /// Writes a piece of a body.
    /// - Returns: nil while more is to come.
    func received(
        _ bytes: [UInt8], isLast: Bool, _ transfer: BlobTransfer, now: Int64
    ) throws(StoreError) -> Step? {
        guard var receiving = transfer.upload else { return nil }
        receiving.hash.update(bytes)
        transfer.upload = receiving
        metrics.blobBytesReceived.add(bytes.count)
        try receiving.writer?.write(bytes)
        guard isLast else { return nil }
        guard receiving.hash.digest() == receiving.part.sha256 else {
            ended(transfer)
            return refused(BlobAnswer.otherHash, .hash)
        }
        // After an error the caller ends the transfer, which gives up an upload that the client does not know.
        try receiving.writer?.finish()
        metrics.blobParts.add()
        let step =
            if let whole = receiving.whole {
                try finish(whole, proof: Hash.sha256(receiving.part.sha256), now: now)
            } else { Step.respond(BlobAnswer.part(receiving.part)) }
        transfer.upload = nil
        return step
    }

    /// The body will not be received to its end, or what it contained was not accepted.
    func ended(_ transfer: BlobTransfer) {
        if let whole = transfer.upload?.whole { giveUp(whole.id) }
        (transfer.upload, transfer.download) = (nil, nil)
    }

    private func complete(
        _ id: BlobID, _ proof: [UInt8], _ order: BlobOrder, now: Int64
    ) throws(StoreError) -> Step {
        guard let upload = try upload(id, of: order) else { return refused(BlobAnswer.noUpload, .missing) }
        if let known = upload.proof {
            return known == proof
                ? .respond(BlobAnswer.complete(upload)) : refused(BlobAnswer.otherHash, .hash)
        }
        let parts = try store.parts(of: id)
        let missing = Set(1...upload.partCount).subtracting(parts.map(\.number)).sorted()
        guard missing.isEmpty else { return refused(BlobAnswer.missing(missing, received: parts), .state) }
        guard Hash.sha256(parts.flatMap(\.sha256)) == proof else { return refused(BlobAnswer.otherHash, .hash) }
        return try finish(upload, proof: proof, now: now)
    }

    private func finish(_ upload: BlobUpload, proof: [UInt8], now: Int64) throws(StoreError) -> Step {
        try store.complete(upload.id, length: upload.length)
        guard try ledger.complete(upload.id, proof: proof, now: now) else {
            // It has expired meanwhile; the sweep removes the blob, which has no row.
            return refused(BlobAnswer.noUpload, .missing)
        }
        // Only the list of its parts is left; if it stays, the sweep removes it.
        try? store.abort(upload.id)
        return .respond(BlobAnswer.complete(upload))
    }

    private func abort(_ id: BlobID, _ order: BlobOrder) throws(StoreError) -> Step {
        guard let upload = try upload(id, of: order) else { return refused(BlobAnswer.noUpload, .missing) }
        guard upload.proof == nil else { return refused(BlobAnswer.isComplete, .state) }
        try ledger.remove(upload: id)
        // What stays is found by the sweep.
        try? store.abort(id)
        return .respond(BlobAnswer.aborted)
    }

    // MARK: Downloads

    private func read(
        _ blob: BlobID, _ owner: String, _ node: NodeID, _ conditions: BlobConditions, _ transfer: BlobTransfer
    ) throws(StoreError) -> Step {
        let order = transfer.order
        guard let tree = try self.owner(of: node, named: owner, for: order),
            let length = try ledger.length(of: blob, in: node, of: order.app, tree)
        else { return refused(BlobAnswer.noBlob, .missing) }
        let tag = BlobAnswer.tag(of: blob)
        if let known = conditions.ifNoneMatch, known == "*" || known.contains(tag) {
            return .respond(BlobAnswer.notModified(blob))
        }
        let isSame = conditions.ifRange.map { $0 == tag } ?? true
        let range = BlobRange(isSame ? conditions.range : nil, length: length)
        let bytes: Range<Int64>
        switch range {
        case .none: return refused(BlobAnswer.noRange(blob, length: length), .request)
        case .whole: bytes = 0..<length
        case .part(let part): bytes = part
        }
        let head = BlobAnswer.content(blob, bytes, of: length, isPart: range != .whole)
        let reader = try store.open(blob)
        guard let reader, reader.length == length else {
            let found = reader?.length ?? 0
            log.error("blobs.lost", ["blob": .text(blob.text), "length": .int(length), "found": .int(found)])
            return refused(BlobAnswer.lost, .lost)
        }
        if conditions.isHead { return .respond(head) }
        transfer.download = BlobTransfer.Sending(reader: reader, bytes: bytes)
        return .download(head)
    }

    /// The owner of the tree that the user reads: the user, or the owner of a branch of which the user is a reader.
    private func owner(of node: NodeID, named text: String, for order: BlobOrder) throws(StoreError) -> UserID? {
        guard let branch = BranchName(text) else {
            return order.user.text.utf8.elementsEqual(text.utf8) ? order.user : nil
        }
        return try ledger.mayRead(order.user, node, in: branch, of: order.app) ? branch.owner : nil
    }

    /// The next bytes of an answer; nil when there are none. Bytes of a file are in memory afterwards, so that sending
    /// them does not wait for the disk.
    func next(_ transfer: BlobTransfer) throws(StoreError) -> BodyPiece? {
        guard var sending = transfer.download, !sending.bytes.isEmpty else { return nil }
        let start = sending.bytes.lowerBound
        let file = transfer.sendsFiles ? sending.reader.file : nil
        let count = Int(min(Int64(sending.bytes.count), file == nil ? Self.bytesWindow : Self.fileWindow))
        sending.bytes = start + Int64(count)..<sending.bytes.upperBound
        transfer.download = sending.bytes.isEmpty ? nil : sending
        metrics.blobBytesSent.add(count)
        if let file {
            try sending.reader.load(at: start, count: count)
            return .file(FileSlice(file, offset: start, count: count))
        }
        let bytes = try sending.reader.read(at: start, count: count)
        guard bytes.count == count else { throw StoreError(.corrupt, "a blob is shorter than its length") }
        return .bytes(bytes)
    }
}
