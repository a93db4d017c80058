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
    private let id: NodeID = NodeID.random(TreeRandom.system.bytes)
    private var draft: NodeDraft
    private var tree: TreePlace?
    private var keys: PublicKeys?
    private var blob: SpooledBlob?
    private var body = [UInt8]()

    /// Times that a batch is sent whose answer is unknown: the server makes it once.
    private static let attemptsMax = 3

    init(_ session: ClientSession, _ branch: BranchName, _ draft: NodeDraft, by identity: MessageIdentity) {
        (self.session, self.branch, self.draft, self.identity) = (session, branch, draft, identity)
    }

    func run(_ sections: NodeSections) async throws(TreeError) {
        let contents = try TreeContents(temporary: HTTPBlobTransport(session, branch))
        do throws(TreeError) {
            try await prepare()
            try await seal(sections, contents)
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
    private func seal(_ sections: NodeSections, _ contents: TreeContents) async throws(TreeError) {
        do throws(ContentError) {
            switch try await contents.disk.spool(sections, node: id) {
            case .none: return
            case .inline(let content): draft.content = .inline(content)
            case .blob(let spooled): blob = spooled
            }
            guard let blob else { return }
            let uploaded = try await contents.uploader.upload(
                blob.file, state: [], control: UploadControl(), save: { _ in }, progress: { _ in }, trouble: { _ in })
            draft.content = .blob(blob.plan, uploaded)
        } catch { throw TreeError(error) }
    }

    private func makeBody() throws(TreeError) {
        guard let tree, let keys else { throw .closed }
        let record: NodeRecord
        do throws(SealFault) {
            record = try NodeSealer(tree).deposit(draft, id, into: branch.root, for: keys, by: identity)
        } catch { throw TreeError(.content, "the record could not be made: \(error)") }
        let batch = BatchID.random(TreeRandom.system.bytes)
        body = Array("{\"id\":\"\(batch.text)\",\"ops\":[".utf8)
        body += TreeOperation.put(id, source: 0, record).json.serialized() + Array("]}".utf8)
    }

    private func send() async throws(TreeError) {
        let connection = try connection
        var trouble = ""
        for _ in 0..<Self.attemptsMax {
            switch await connection.post(body) {
            case .answer(.made): return
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
