import CThicketNet
import Glibc
import Testing
import ThicketPlatform
import ThicketServer
import ThicketTestSupport

/// Sockets in the file system that are created while other threads create files.
@Suite("Unix-domain sockets beside other files") struct UnixListenTests {
    @Test("sockets created by several threads at once have mode 0600, and other threads' files keep their mode")
    func mode() throws {
        let folder = TemporaryFolder()
        let (path, file): (String, String) = (folder.path, folder.path + "/file")
        let modes = BlockingQueue<[mode_t]>(bound: 8)
        let threads: [OwnThread] = (0..<4).map { (number: Int) in
            OwnThread("listen-\(number)") { modes.add(Self.modes(ofSocketsAt: path + "/\(number)")) }
        }
        let before: mode_t = Self.modeOfFile(file)
        var files: Set<mode_t> = []
        for _ in 0..<400 { files.insert(Self.modeOfFile(file)) }
        for thread in threads { thread.join() }
        #expect(Set(modes.takeAll().flatMap(\.self)) == [0o600])
        #expect(files == [before] && Self.modeOfFile(file) == before)
    }

    private static func modes(ofSocketsAt path: String) -> [mode_t] {
        (0..<200).map { _ in
            let descriptor: Int32 = thicket_listen_unix(path, 1)
            defer {
                close(descriptor)
                unlink(path)
            }
            return descriptor < 0 ? 0 : mode(path)
        }
    }

    private static func modeOfFile(_ path: String) -> mode_t {
        let descriptor: Int32 = open(path, O_CREAT | O_EXCL | O_WRONLY, 0o666)
        defer {
            close(descriptor)
            unlink(path)
        }
        return mode(path)
    }

    private static func mode(_ path: String) -> mode_t {
        var status = stat()
        return stat(path, &status) == 0 ? status.st_mode & 0o777 : 0
    }
}
