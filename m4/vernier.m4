# SPDX-License-Identifier: Apache-2.0
# The checks of Vernier's own configure.

# VN_ARG_ENABLE(NAME, WHAT) - an option --enable-NAME, off unless asked for.
AC_DEFUN([VN_ARG_ENABLE], [
	AC_ARG_ENABLE([$1], [AS_HELP_STRING([--enable-$1], [$2])], [], [enable_$1=no])
])

# VN_CHECK_CFLAGS(VARIABLE, FLAGS) - puts those of FLAGS that the compiler takes into VARIABLE.
# -Werror: a compiler may accept what it does not know with a warning.
AC_DEFUN([VN_CHECK_CFLAGS], [
	vn_saved_cflags=$CFLAGS
	for vn_flag in $2; do
		AC_MSG_CHECKING([whether $CC takes $vn_flag])
		CFLAGS="$vn_saved_cflags $vn_flag -Werror"
		AC_COMPILE_IFELSE([AC_LANG_PROGRAM],
			[AC_MSG_RESULT([yes]); $1="$$1 $vn_flag"], [AC_MSG_RESULT([no])])
	done
	CFLAGS=$vn_saved_cflags
])

# VN_CHECK_VERSION_SCRIPT(FILE) - VERSION_SCRIPT is how to link with the version script FILE;
# where the linker takes none, how to export the same symbols without it.
AC_DEFUN([VN_CHECK_VERSION_SCRIPT], [
	AC_MSG_CHECKING([whether the linker takes a version script])
	VN_LINKS_SHARED([-Wl,--version-script,$srcdir/$1], [vn_version_script=yes], [vn_version_script=no])
	AS_IF([test $windows = yes], [vn_version_script=no])
	AC_MSG_RESULT([$vn_version_script])
	AM_CONDITIONAL([VERSION_SCRIPT], [test "$vn_version_script" = yes])
])

# VN_CHECK_NODELETE(VARIABLE) - the linker's flag for a library that dlclose() leaves in the process, where it has one.
AC_DEFUN([VN_CHECK_NODELETE], [
	AC_MSG_CHECKING([whether the linker takes -z nodelete])
	VN_LINKS_SHARED([-Wl,-z,nodelete], [$1=-Wl,-z,nodelete], [$1=])
	AS_IF([test $windows = yes], [$1=])
	AC_MSG_RESULT([${$1:-no}])
	AC_SUBST([$1])
])

# VN_LINKS_SHARED(FLAG, YES, NO)
AC_DEFUN([VN_LINKS_SHARED], [
	vn_saved_ldflags=$LDFLAGS
	LDFLAGS="$LDFLAGS -shared -fPIC $1"
	AC_LINK_IFELSE([AC_LANG_SOURCE([[int vn_probe(void); int vn_probe(void) { return 0; }]])], [$2], [$3])
	LDFLAGS=$vn_saved_ldflags
])
