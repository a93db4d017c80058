import Glibc
import Synchronization
import ThicketPlatform
import ThicketProtocol

/// The running server's control socket for administrators: a Unix socket in the data folder, for its owner only.
///
/// It has a thread of its own and one for each connection, so that a slow connection delays neither the loop nor
/// others.
public final class ControlSocket: Sendable {
    /// Asks the clients. Called on a connection's thread; `report` may be called from any thread and never waits. The
    /// returned function is called when the connection has closed or needs no further replies.
    public typealias Asker =
        @Sendable (RemoteQuestion, _ report: @escaping @Sendable (RemoteReply) -> Void) -> @Sendable () -> Void

    /// Connections at once; one more gets a failure.
    static let visitorsMax = 8
    /// Replies that may wait for a slow connection.
    static let repliesMax = 10_000

    private let listener: Int32
    private let folder: DataFolder
    private let asker: Asker
    private let signOut: @Sendable (AppID, UserID) -> Void
    private let changeMode: @Sendable (AppID, BucketName, BucketMode) -> Void
    private let log: Log
    private let isStopping = Atomic<Bool>(false)
    private let visitors = Atomic<Int>(0)
    private let thread = Mutex<OwnThread?>(nil)

    /// Opens the socket. The caller holds the folder's lock, so an existing socket file is left from a crash.
    /// - Parameter signOut: called on a connection's thread when tokens of a user have ended; must not wait.
    public init(
        folder: DataFolder, log: Log, signOut: @escaping @Sendable (AppID, UserID) -> Void = { _, _ in },
        changeMode: @escaping @Sendable (AppID, BucketName, BucketMode) -> Void = { _, _, _ in },
        asker: @escaping Asker
    ) throws(ControlError) {
        self.signOut = signOut
        self.changeMode = changeMode
        self.folder = folder
        self.log = log
        self.asker = asker
        unlink(folder.controlPath)
        let made = try UnixAddress.socket()
        let bound = UnixAddress.with(folder, made, bind)
        guard bound == 0, chmod(folder.controlPath, 0o600) == 0, listen(made, 16) == 0 else {
            let reason = DataFolder.reason(errno)
            close(made)
            throw ControlError("\(folder.controlPath): the control socket cannot be opened: \(reason)")
        }
        self.listener = made
    }

    /// Starts accepting connections.
    public func start() {
        let started = OwnThread("control", stackBytes: 512 << 10) { self.acceptVisitors() }
        thread.withLock { $0 = started }
    }

    /// Stops accepting connections; open ones get only replies that are being written.
    public func stop() {
        isStopping.store(true, ordering: .relaxed)
        shutdown(listener, Int32(SHUT_RDWR))
        thread.withLock { (thread: inout OwnThread?) in
            thread?.join()
            thread = nil
        }
        close(listener)
        unlink(folder.controlPath)
    }

    private func acceptVisitors() {
        while !isStopping.load(ordering: .relaxed) {
            let visitor = accept(listener, nil, nil)
            if visitor < 0 {
                // The listener was shut down, or no descriptor is free at the moment.
                if errno == EMFILE || errno == ENFILE { poll(nil, 0, 100) }
                continue
            }
            guard visitors.load(ordering: .relaxed) < ControlSocket.visitorsMax else {
                ControlSocket.send(.failed("too many questions at once; ask again later"), to: visitor)
                close(visitor)
                continue
            }
            visitors.wrappingAdd(1, ordering: .relaxed)
            _ = OwnThread("control-visitor", stackBytes: 512 << 10) {
                self.serve(visitor)
                close(visitor)
                self.visitors.wrappingSubtract(1, ordering: .relaxed)
            }
        }
    }

    private func serve(_ visitor: Int32) {
        UnixAddress.limitWaiting(visitor, seconds: 5)
        var lines = LineReader(descriptor: visitor, bytesMax: ControlLine.requestBytesMax)
        guard let line = lines.next() else { return }
        do throws(ControlError) {
            let question: RemoteQuestion
            switch try ControlLine.request(line) {
            case .ask(let asked): question = asked
            case .signOut(let app, let user):
                log.info("admin.signed_out", ["app": .hashed(app.text), "user": .hashed(user.text)])
                signOut(app, user)
                ControlSocket.send(.ended, to: visitor)
                return
            case .changeMode(let app, let name, let mode):
                log.info(
                    "admin.bucket_mode",
                    ["app": .hashed(app.text), "bucket": .hashed(name.text), "mode": .text(mode.word)])
                changeMode(app, name, mode)
                ControlSocket.send(.ended, to: visitor)
                return
            }
            log.info(
                "admin.asked",
                [
                    "app": .hashed(question.bucket.app.text), "user": .hashed(question.bucket.user.text),
                    "bucket": .hashed(question.bucket.name.text), "what": .text("\(question.kind)"),
                ])
            pass(question, to: visitor)
        } catch {
            ControlSocket.send(.failed(error.description), to: visitor)
        }
    }

    private func pass(_ question: RemoteQuestion, to visitor: Int32) {
        let replies = BlockingQueue<RemoteReply>(bound: ControlSocket.repliesMax)
        let cancel = asker(question) { (reply: RemoteReply) in replies.add(reply) }
        defer { cancel() }
        // The asker ends by itself; the margin is for one that cannot.
        let deadline = SystemClock.steadyTime() + .seconds(question.seconds + 2)
        while SystemClock.steadyTime() < deadline, !isStopping.load(ordering: .relaxed) {
            let slice = min(deadline, SystemClock.steadyTime() + .milliseconds(200))
            for reply in replies.takeAll(until: slice) {
                guard ControlSocket.send(reply, to: visitor) else { return }
                switch reply {
                case .ended, .failed: return
                case .asked, .answer: continue
                }
            }
            guard !UnixAddress.isGone(visitor) else { return }
        }
        ControlSocket.send(.ended, to: visitor)
    }

    @discardableResult
    private static func send(_ reply: RemoteReply, to visitor: Int32) -> Bool {
        UnixAddress.sendAll(ControlLine.encoded(reply), to: visitor)
    }
}

/// The client side of the control socket, for `thicketd ask` and others.
public enum ControlClient {
    /// Seconds to wait for a reply.
    private static let patience = 5

    /// Makes the server of a folder close the connections that a user's ended tokens opened.
    /// - Throws: when no server runs on the folder (nothing is open then), or the connection is lost.
    public static func signOut(_ app: AppID, _ user: UserID, folder: DataFolder) throws(ControlError) {
        try order(ControlLine.encoded(signingOut: app, user), folder)
    }

    /// Makes the server of a folder notify its clients that buckets of a name have another mode.
    /// - Throws: as `signOut`.
    static func changeMode(
        _ app: AppID, _ name: BucketName, _ mode: BucketMode, folder: DataFolder
    ) throws(ControlError) {
        try order(ControlLine.encoded(changing: app, name, to: mode), folder)
    }

    /// Sends a request that is answered by `ended` alone.
    private static func order(_ line: [UInt8], _ folder: DataFolder) throws(ControlError) {
        let socket = try connected(folder)
        defer { close(socket) }
        UnixAddress.limitWaiting(socket, seconds: patience)
        guard UnixAddress.sendAll(line, to: socket) else {
            throw ControlError("the server did not accept the request")
        }
        var lines = LineReader(descriptor: socket, bytesMax: ControlLine.requestBytesMax)
        guard let line = lines.next(), ControlLine.reply(line) == .ended else {
            throw ControlError("the server did not confirm the request")
        }
    }

    private static func connected(_ folder: DataFolder) throws(ControlError) -> Int32 {
        let socket = try UnixAddress.socket()
        guard UnixAddress.with(folder, socket, connect) == 0 else {
            close(socket)
            throw ControlError(
                "\(folder.path): no server runs on this folder; start one with 'thicketd serve'", isNoServer: true)
        }
        return socket
    }

    /// Asks the server of a folder; replies are passed to `receive` until the last.
    /// - Throws: when no server runs on the folder, or the connection is lost.
    public static func ask(
        _ question: RemoteQuestion, folder: DataFolder, receive: (RemoteReply) -> Void
    ) throws(ControlError) {
        let socket = try connected(folder)
        defer { close(socket) }
        UnixAddress.limitWaiting(socket, seconds: question.seconds + 5)
        guard UnixAddress.sendAll(ControlLine.encoded(question), to: socket) else {
            throw ControlError("the server did not accept the question")
        }
        var lines = LineReader(descriptor: socket, bytesMax: 64 << 20)
        while let line = lines.next() {
            guard let reply = ControlLine.reply(line) else {
                throw ControlError("the server sent a reply that this version does not know")
            }
            switch reply {
            case .ended: return
            case .failed(let reason): throw ControlError(reason)
            case .asked, .answer: receive(reply)
            }
        }
        throw ControlError("the server closed the connection before the time was over")
    }
}
