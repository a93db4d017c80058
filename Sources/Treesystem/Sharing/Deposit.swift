import ThicketClient
import ThicketCrypto
internal import ThicketKeyLog
import ThicketProtocol
import ThicketTree
import ThicketTreeShape

/// One deposit in a drop box, from its content to the server's answer.
///
/// An actor whose calls pass nothing: with ids of 128 bits in the frames of async functions that call closures, the
/// compiler of Swift 6.3 made code that crashed.
actor Deposit {
    private let session: ClientSession
    private let branch: BranchName
    private let identity: MessageIdentity
    /// The deposit itself, then its attachments.
    private var parts: [Part]
    /// Whether an earlier call may have made the deposit.
    private let isRepeated: Bool
    private var tree: TreePlace?
    private var keys: PublicKeys?
    private var body = [UInt8]()

    /// A node of a deposit.
    struct Part: Sendable {
        let id: NodeID
        var draft: NodeDraft
        let sections: NodeSections

        init(_ draft: NodeDraft, _ sections: NodeSections, id: NodeID = .random()) {
            (self.id, self.draft, self.sections) = (id, draft, sections)
        }
    }

    /// Times that a batch is sent whose answer is unknown: the server makes it once.
    private static let attemptsMax = 3

    /// - Parameters:
    ///   - parts: the deposit, then its attachments.
    ///   - isRepeated: whether an earlier call may have made it.
    init(
        _ session: ClientSession, _ branch: BranchName, _ parts: [Part], by identity: MessageIdentity, isRepeated: Bool
    ) {
        (self.session, self.branch, self.parts, self.identity) = (session, branch, parts, identity)
        self.isRepeated = isRepeated
    }

    func run(_ progress: @escaping @Sendable (TransferProgress) -> Void) async throws(TreeError) {
        let contents = try TreeContents(temporary: HTTPBlobTransport(session, branch))
        do throws(TreeError) {
            try await prepare()
            for place in parts.indices { try await seal(place, contents, progress) }
            try makeBody()
            try await send()
        } catch {
            await contents.close()
            throw error
        }
        await contents.close()
    }

    private var connection: TreeConnection {
        get throws(TreeError) {
            guard let tree else { throw .closed }
            return TreeConnection(session, tree, branch)
        }
    }

    /// Keys of the owner, which the key log proves.
    private func prepare() async throws(TreeError) {
        do throws(ClientError) { tree = TreePlace(app: try await session.syncOptions().app, owner: branch.owner) } catch
        {
            throw TreeError(error)
        }
        let people = SessionPeople(session: session)
        switch await people.answer(KeyQuestion(branch.owner)) {
        case .found(let found, _): keys = found
        case .failed(let trouble): throw TreeError(.keys, trouble.detail, reason: trouble.rawValue)
        }
    }

    /// Small contents are in the record, others are uploaded first.
    private func seal(
        _ place: Int, _ contents: TreeContents, _ progress: @escaping @Sendable (TransferProgress) -> Void
    ) async throws(TreeError) {
        do throws(ContentError) {
            let blob: SpooledBlob
            switch try await contents.disk.spool(parts[place].sections, node: parts[place].id) {
            case .none: return
            case .inline(let content):
                parts[place].draft.content = .inline(content)
                return
            case .blob(let spooled): blob = spooled
            }
            let uploaded = try await contents.uploader.upload(
                blob.file, state: [], control: UploadControl(), save: { _ in }, progress: progress, trouble: { _ in })
            parts[place].draft.content = .blob(blob.plan, uploaded)
        } catch { throw TreeError(error) }
    }

    /// One batch: the deposit is there with all attachments, or not at all.
    private func makeBody() throws(TreeError) {
        guard let tree, let keys, let first = parts.first else { throw .closed }
        let sealer = NodeSealer(tree)
        var operations = [TreeOperation]()
        do throws(SealFault) {
            let (record, childKeys) = try sealer.depositing(
                first.draft, first.id, into: branch.root, for: keys, by: identity)
            operations.append(.put(first.id, source: 0, record))
            for part in parts.dropFirst() {
                let record = try sealer.create(part.draft, part.id, below: childKeys, by: identity)
                operations.append(.put(part.id, source: 0, record))
            }
        } catch { throw TreeError(.content, "the record could not be made: \(error)") }
        let batch = BatchID.random(TreeRandom.system.bytes)
        body = Array("{\"id\":\"\(batch.text)\",\"ops\":[".utf8)
        body += Array(operations.map { $0.json.serialized() }.joined(separator: [UInt8(ascii: ",")]))
        body += Array("]}".utf8)
        guard body.count <= TreeLimits.batchBytesMax else {
            throw TreeError(.limit, "the records of a deposit are more than \(TreeLimits.batchBytesMax) bytes")
        }
    }

    private func send() async throws(TreeError) {
        let connection = try connection
        var trouble = ""
        for _ in 0..<Self.attemptsMax {
            switch await connection.post(body) {
            case .answer(.made): return
            // A batch is made as a whole: with the deposit, the server has its attachments.
            case .answer(.refused(let refusal)) where isRepeated && refusal.isRepetition: return
            case .answer(.refused(let refusal)):
                let word = refusal.reason?.rawValue ?? String(refusal.code.rawValue)
                throw TreeError(.refused, "the server refused the deposit (\(word))", reason: word)
            case .unknown(let why, _): trouble = why
            case .unauthorized: throw TreeError(.network, "the login has ended", reason: "unauthorized")
            }
        }
        throw TreeError(.network, trouble)
    }
}

extension BatchRefusal {
    /// Whether the server has, or had, the first node of the batch.
    fileprivate var isRepetition: Bool { reason == .repeated && operation == 0 }
}
