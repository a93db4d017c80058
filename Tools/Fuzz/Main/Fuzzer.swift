import Glibc
import ThicketFuzz

/// The target that this process runs, by THICKET_FUZZ_TARGET.
private let target: @Sendable ([UInt8]) -> Void = {
    let name: String = getenv("THICKET_FUZZ_TARGET").map { String(cString: $0) } ?? ""
    guard let found = FuzzTargets.all.first(where: { $0.name == name }) else {
        let names: String = FuzzTargets.all.map(\.name).joined(separator: "\n")
        print(names)
        exit(name.isEmpty ? 0 : 2)
    }
    return found.run
}()

/// What libFuzzer calls, again and again.
@_cdecl("LLVMFuzzerTestOneInput")
public func testOneInput(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    target([UInt8](UnsafeBufferPointer(start: start, count: count)))
    return 0
}

/// Asked for no target, tells their names and ends: `Tools/Fuzz/run` reads them.
@_cdecl("LLVMFuzzerInitialize")
public func initialize(_ count: UnsafeMutablePointer<CInt>?, _ arguments: UnsafeMutableRawPointer?) -> CInt {
    _ = target
    return 0
}
