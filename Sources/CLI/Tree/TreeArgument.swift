import ThicketCommandLine
import ThicketTree
import ThicketTreeShape
import ThicketTreesystem

/// A path of the tree as it is typed: `home/trips/plan.md`, `trips/plan.md`, `trips/a\/b`, `trips/`.
///
/// A text whose first name is not that of a trunk begins in `home`. A `/` at the end says that the node is a container.
struct TreeArgument: Sendable {
    let path: TreePath
    /// The text ends in `/`.
    let isContainer: Bool

    init(_ path: TreePath, isContainer: Bool) { (self.path, self.isContainer) = (path, isContainer) }

    /// - Parameter standard: for an empty text, which stands for no text; nil: an empty text is an error.
    /// - Throws: `usage`.
    init(_ text: String, standard: TreePath? = nil) throws(Failure) {
        if text.isEmpty, let standard {
            (path, isContainer) = (standard, true)
            return
        }
        let (body, isContainer) = Self.withoutEnd(text)
        guard !body.isEmpty else {
            throw Failure("'\(Screen.safe(text))' is not a path: it begins with home/ or with a name", .usage)
        }
        let first = body.prefix { $0 != "/" }
        let hasTrunk = Trunk.allCases.contains { $0.rawValue.utf8.elementsEqual(first.utf8) }
        do throws(TreePath.DisplayFault) {
            path = try TreePath(display: hasTrunk ? body : "\(Trunk.home.rawValue)/\(body)")
        } catch {
            throw Failure("'\(Screen.safe(text))' is not a path: \(error)", .usage)
        }
        self.isContainer = isContainer || path.isTrunk
    }

    /// The text without a `/` at its end that separates.
    private static func withoutEnd(_ text: String) -> (String, Bool) {
        let bytes = Array(text.utf8)
        guard bytes.last == 0x2F else { return (text, false) }
        // A name may end in an escaped slash.
        let escapes = bytes.dropLast().reversed().prefix { $0 == 0x5C }.count
        guard escapes.isMultiple(of: 2) else { return (text, false) }
        return (String(decoding: bytes.dropLast(), as: UTF8.self), true)
    }
}

/// Paths and nodes as the commands print them.
enum TreeText {
    /// A path or a name on a terminal: a line feed in it does not begin a line. Into a pipe it goes byte by byte.
    static func shown(_ text: String) -> String {
        guard Terminal.isTerminal(Terminal.standardOutput), text.utf8.contains(0x0A) else { return text }
        return text.split(separator: "\n", omittingEmptySubsequences: false).joined(separator: "\\u{a}")
    }

    static func shown(_ path: TreePath) -> String { shown(text(path)) }

    /// Where the paths of the tree that a command works in are in the own tree.
    struct Prefix: Sendable {
        /// The root of a branch, in the branch.
        let inner: TreePath
        /// The pointer node, in the own tree.
        let outer: TreePath

        init(inner: TreePath, outer: TreePath) { (self.inner, self.outer) = (inner, outer) }

        /// The root is the only node below `home`: its name, which is not shown, may be unknown.
        init(pointer: TreePath) { self.init(inner: TreePath(.home, names: pointer.names.suffix(1)), outer: pointer) }

        /// Runs a body whose paths are shown as those of the own tree.
        func during(_ body: () async throws(Failure) -> Void) async throws(Failure) {
            let result: Result<Void, Failure> = await TreeText.$prefix.withValue(self) {
                do throws(Failure) { return .success(try await body()) } catch { return .failure(error) }
            }
            try result.get()
        }
    }

    @TaskLocal static var prefix: Prefix?

    /// The command that sends what waits, for a message.
    static var nextCommand: String {
        prefix.map { "the next command in \(Screen.safe($0.outer.description))" } ?? "the next 'thicket tree' command"
    }

    /// A path as it would be typed.
    static func text(_ path: TreePath) -> String {
        guard let prefix, path.trunk == prefix.inner.trunk, path.depth >= prefix.inner.depth else {
            return path.description
        }
        let names = prefix.outer.names + path.names.dropFirst(prefix.inner.depth)
        return TreePath(prefix.outer.trunk, names: names).description
    }

    /// In a message on standard error.
    static func named(_ path: TreePath) -> String {
        Screen.safe(text(path)).split(separator: "\n", omittingEmptySubsequences: false)
            .joined(separator: "\\u{a}")
    }

    /// A name as it is in a path.
    static func name(_ name: NodeName) -> String {
        String(TreePath(.home, names: [name]).description.dropFirst(Trunk.home.rawValue.count + 1))
    }

    /// `1.5 MiB`.
    static func size(_ bytes: UInt64) -> String {
        var (value, unit) = (Double(bytes), 0)
        let units = ["B", "KiB", "MiB", "GiB", "TiB"]
        while value >= 1_024, unit < units.count - 1 { (value, unit) = (value / 1_024, unit + 1) }
        guard unit > 0 else { return "\(bytes) B" }
        let tenths = Int((value * 10).rounded(.down))
        return "\(tenths / 10).\(tenths % 10) \(units[unit])"
    }
}
