import Glibc
import Testing

/// Files and folders.
@Suite("Layout")
struct LayoutTests {
    /// The longest source file. A longer one usually holds two ideas that need names.
    private static let linesMax = 500

    @Test("no source file is longer than 500 lines")
    func length() {
        for folder in ["Sources", "Tests", "Tools", "Snippets"] {
            for path in SwiftText.paths(folder) {
                let count = Repository.bytes(path).reduce(0) { (count: Int, byte: UInt8) in
                    byte == 0x0A ? count + 1 : count
                }
                #expect(count <= LayoutTests.linesMax, "\(path) has \(count) lines: split it")
            }
        }
    }

    @Test("every source file belongs to a target, and every target's folder exists")
    func orphans() throws {
        let package = try #require(Repository.text("Package.swift"))
        var folders = Set<String>()
        for literal in package.split(separator: "\"") where !literal.contains(" ") {
            if literal.contains("/") || Repository.exists(String(literal)) { folders.insert(String(literal)) }
        }
        for line in package.split(separator: "\n") where line.contains("tests(") || line.contains("Tests\",") {
            for literal in line.split(separator: "\"") where literal.hasSuffix("Tests") {
                folders.insert("Tests/\(literal)")
            }
        }
        folders.remove("Tests/\\(name)")
        for path in Repository.files("", ending: ".swift") where path.contains("/") {
            let isSnippet = path.hasPrefix("Snippets/")
            #expect(
                isSnippet || folders.contains { (folder: String) in path.hasPrefix(folder + "/") },
                "\(path) belongs to no target of Package.swift")
        }
        for folder in folders where folder.contains("/") && !folder.hasSuffix(".yaml") {
            #expect(Repository.exists(folder), "Package.swift names \(folder), which is not there")
        }
    }

    @Test("no file is empty, and none is left from an editor or a merge")
    func leftovers() {
        for path in Repository.files() {
            let name: Substring = path.split(separator: "/").last ?? ""
            #expect(
                !name.hasSuffix("~") && !name.hasSuffix(".orig") && !name.hasSuffix(".rej") && !name.hasSuffix(".bak"))
            guard name.hasSuffix(".swift") else { continue }
            let bytes = Repository.bytes(path)
            #expect(!bytes.isEmpty, "\(path) is empty")
            #expect(
                Bytes.places(of: "\n<<<<<<< ", in: bytes).isEmpty && Bytes.places(of: "\n>>>>>>> ", in: bytes).isEmpty,
                "\(path): a merge was left undone")
        }
    }

    @Test("no file names a path of the machine it was written on")
    func machinePaths() {
        // The root itself, and the folders above it unless every machine has them.
        let everywhere: Set<String> = [
            "", "/tmp", "/usr", "/var", "/opt", "/srv", "/home", "/root", "/src", "/data", "/mnt", "/builds", "/run",
        ]
        var own = [String]()
        var path = Repository.root
        while !everywhere.contains(path) {
            own.append(path)
            path = "/" + path.split(separator: "/").dropLast().joined(separator: "/")
            if path == "/" { break }
        }
        // Written in pieces, so that this file does not name them.
        own += ["Users", "root"].map { (name: String) in "/" + name + "/" }
        for file in Repository.files() where LayoutTests.isText(file) {
            let bytes = Repository.bytes(file)
            for folder in own {
                let start = folder.hasSuffix("/") ? folder : folder + "/"
                #expect(!LayoutTests.names(start, in: bytes), "\(file) names \(folder)")
            }
        }
    }

    @Test("links between documents have an existing target")
    func links() {
        for file in Repository.files("", ending: ".md") {
            let base: Substring = file.lastIndex(of: "/").map { file[...$0] } ?? ""
            for target in LayoutTests.linkTargets(Repository.text(file) ?? "") {
                #expect(Repository.exists(String(base) + target), "\(file): the link to \(target) leads nowhere")
            }
        }
    }

    private static func isText(_ path: String) -> Bool {
        let endings = [
            ".swift", ".md", ".sh", ".h", ".modulemap", ".yml", ".py", ".json", ".txt", "/run", "Dockerfile",
        ]
        return path == "dev" || endings.contains { (ending: String) in path.hasSuffix(ending) }
    }

    /// Whether `folder` is in `bytes` as the beginning of a path, not inside a longer one.
    private static func names(_ folder: String, in bytes: [UInt8]) -> Bool {
        Bytes.places(of: folder, in: bytes).contains { (place: Int) in
            guard place > 0 else { return true }
            let before = Character(Unicode.Scalar(bytes[place - 1]))
            return !before.isLetter && !before.isNumber && !"./_-~$}".contains(before)
        }
    }

    /// Relative targets of `[words](target)`, without their anchors.
    private static func linkTargets(_ text: String) -> [String] {
        var targets = [String]()
        for piece in text.split(separator: "](").dropFirst() {
            let target: Substring = piece.prefix { $0 != ")" && $0 != "#" && $0 != "\n" }
            guard !target.isEmpty, !target.contains("://"), !target.hasPrefix("mailto:") else { continue }
            targets.append(String(target))
        }
        return targets
    }
}
